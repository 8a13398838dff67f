// Targets of fuzz_jobs: what arrives over a job's connections, what jobs leave in files, what Slurm prints,
// and traces of other programs. Not recorded topologies: hwloc reads them, and crashes on damaged ones.
#include <arpa/inet.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>

#include "planner/history/run_status.h"
#include "planner/inputs/submit_options.h"
#include "planner/inputs/submitted_limits.h"
#include "planner/report/run_report.h"
#include "planner/spec/error.h"
#include "planner/spec/text_file.h"
#include "profiler/traces/kineto_trace.h"
#include "profiler/traces/nsys_trace.h"
#include "profiler/traces/traced_layers.h"
#include "spank_plugin/batch_script.h"
#include "spank_plugin/slurm/accounting.h"
#include "spank_plugin/slurm/commands/command_lines.h"
#include "spank_plugin/slurm/commands/gres.h"
#include "spank_plugin/slurm/commands/job_environment.h"
#include "spank_plugin/slurm/commands/job_share.h"
#include "spank_plugin/slurm/commands/scontrol.h"
#include "spank_plugin/slurm/commands/tres.h"
#include "spank_plugin/slurm/feature_expression.h"
#include "spank_plugin/slurm/setup_cache.h"
#include "tests/fuzz/bundle.h"
#include "tests/fuzz/targets.h"
#include "trainer/checkpoint/checkpoint_manifest.h"
#include "trainer/checkpoint/shard_writer.h"
#include "trainer/comm/handshake.h"
#include "trainer/comm/sealed_stream.h"
#include "trainer/comm/socket_listener.h"
#include "trainer/control/control_message.h"
#include "trainer/control/job_secrets.h"

namespace sailor::fuzz {
namespace {

// For functions that may throw any std::runtime_error, or only another error of that kind.
template <class Error = std::runtime_error, class Function>
void may_fail(Function function) {
  try {
    function();
  } catch (const Error& error) {
    check_error_text(error.what());
  }
}

void control_message(const std::string& input) {
  may_fail([&] {
    const std::string sent = to_json(parse_control_message(input));
    if (to_json(parse_control_message(sent)) != sent) broken("a message changes on its way");
  });
}

constexpr JobSecret kSecret = {1, 2, 3};
constexpr Nonce kAcceptor = {4, 5, 6}, kConnector = {7, 8, 9};

// No bytes are a proof, and a name arrives as it was sent.
void handshake(const std::string& input) {
  if (input.size() >= kHelloHeadBytes) {
    const auto size = hello_size(input);
    if (size && (*size < kHelloHeadBytes + sizeof(Proof) || *size > kHelloHeadBytes + 2 * kMaxNameBytes + 32))
      broken("a hello of a wrong size");
    if (size && input.size() >= *size && read_hello(kSecret, input.substr(0, *size), kAcceptor))
      broken("a hello without the secret was accepted");
  }
  if (input.size() >= kChallengeBytes) read_challenge(input.substr(0, kChallengeBytes));
  if (input.size() >= kWelcomeBytes &&
      check_welcome(kSecret, input.substr(0, kWelcomeBytes), kAcceptor, kConnector))
    broken("a welcome without the secret was accepted");

  const std::size_t half = std::min(input.size() / 2, kMaxNameBytes);
  const Introduction who{input.substr(0, half), input.substr(half, half), 1, 2};
  const std::string hello = make_hello(kSecret, who, kAcceptor, kConnector);
  const auto read = read_hello(kSecret, hello, kAcceptor);
  if (hello_size(hello.substr(0, kHelloHeadBytes)) != hello.size() || !read || read->who != who)
    broken("a hello changes on its way");
}

class LoopbackConnection {
 public:
  explicit LoopbackConnection(uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const linger at_once{1, 0};  // no connection stays behind in TIME_WAIT
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    // libFuzzer's alarm, with which it looks for hangs, interrupts calls.
    while (::connect(fd_.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) != 0 && errno != EISCONN)
      if (errno != EINTR && errno != EALREADY)
        broken(std::string("the listener accepts nobody: ") + std::strerror(errno));
  }
  void write(const std::string& bytes) { (void)!::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL); }
  std::string read(std::size_t bytes) {
    std::string got(bytes, '\0');
    for (std::size_t done = 0; done < bytes;) {
      const ssize_t read = ::recv(fd_.get(), got.data() + done, bytes - done, 0);
      if (read == 0 || (read < 0 && errno != EINTR)) broken("the listener does not answer");
      done += static_cast<std::size_t>(std::max<ssize_t>(read, 0));
    }
    return got;
  }

 private:
  FileDescriptor fd_;
};

// A rank's port: whatever a stranger sends, the next one with the secret gets in.
void data_connection(const std::string& input) {
  static Listener listener("127.0.0.1");
  static const bool started = (listener.start(kSecret), true);
  (void)started;
  LoopbackConnection stranger(listener.port());
  stranger.write(input.substr(0, input.size() / 2));
  LoopbackConnection peer(listener.port());
  const auto nonce = read_challenge(peer.read(kChallengeBytes));
  if (!nonce) broken("no challenge");
  const Introduction who{"scope", "name", 0, 1};
  stranger.write(input.substr(input.size() / 2));
  peer.write(make_hello(kSecret, who, *nonce, kConnector));
  if (!check_welcome(kSecret, peer.read(kWelcomeBytes), *nonce, kConnector)) broken("no welcome");
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  static const std::atomic<bool> never{false};
  if (!listener.state().take(who, deadline, never).fd.valid()) broken("the connection is not there");
}

// What a receiver with this key makes of a stream that arrives in pieces of up to `most` bytes.
std::string received(const StreamKey& key, const std::string& stream, std::size_t most) {
  SealedReceiver receiver(key);
  std::string got, taken(64, '\0');
  for (std::size_t sent = 0;;) {
    const std::optional<std::size_t> bytes = receiver.take(taken.data(), taken.size());
    if (!bytes) return got;
    got.append(taken, 0, *bytes);
    if (*bytes > 0) continue;
    if (sent == stream.size()) return got;
    const std::span<char> room = receiver.room();
    const std::size_t next = std::min({room.size(), stream.size() - sent, most});
    std::memcpy(room.data(), stream.data() + sent, next);
    receiver.received(next);
    sent += next;
  }
}

// The first bytes say where the stream is changed and how; the rest is what is sent. With a change, only
// whole frames before it arrive.
void sealed_stream(const std::string& input) {
  if (input.size() < 5) return;
  uint32_t at = 0;
  std::memcpy(&at, input.data(), sizeof at);
  const char change = input[4];
  const std::string payload = input.substr(5);
  constexpr StreamKey key = {1, 1, 2, 3, 5};
  SealedSender sender(key);
  std::string stream;
  constexpr std::size_t kPayload = 100, kFrame = 4 + kPayload + 16;
  for (std::size_t done = 0; done < payload.size(); done += kPayload) {
    sender.seal(payload.data() + done, std::min(kPayload, payload.size() - done));
    stream.append(sender.left().data(), sender.left().size());
    sender.sent(sender.left().size());
  }
  if (stream.empty()) return;
  at %= stream.size();
  stream[at] ^= change;

  const std::string got = received(key, stream, 1 + at % 777);
  if (payload.compare(0, got.size(), got) != 0) broken("other bytes than were sent");
  if (change == 0 ? got != payload : got.size() > at / kFrame * kPayload)
    broken("a changed frame arrived, or one that was not changed did not");
}

// The stream itself, from somebody without the key.
void foreign_stream(const std::string& input) {
  if (!received({9}, input, input.size()).empty()) broken("a frame of somebody without the key was accepted");
}

void checkpoint_manifest(const std::string& input) {
  may_fail([&] {
    const CheckpointManifest read = parse_manifest(input, "manifest.json");
    if (!incomplete(read).empty()) broken("an incomplete checkpoint was accepted");
    const std::string written = to_json(read);
    if (to_json(parse_manifest(written, "written.json")) != written)
      broken("a manifest changes when it is written and read");
  });
}

void shard(const std::string& input) {
  may_fail([&] {
    const std::string sent = to_text(parse_shard(input));
    if (to_text(parse_shard(sent)) != sent) broken("a shard changes on its way");
  });
}

void job_secrets(const std::string& input) {
  static const Directory directory({"secrets"});
  directory.fill({{"secrets", input}});
  may_fail([&] { read_job_secrets(directory.root()); });
}

void run_directory(const std::string& input) {
  static const Directory directory({"plan.json", "metrics.jsonl", "events.jsonl", "summary.json"});
  directory.fill(split_bundle(input));
  const RunStatus status = read_run_status(directory.root());
  status_text(status, 5);
  status_json(status, 5);
  run_report(read_run_history(directory.root()), nullptr, nullptr, {});
}

void layers_of_trace(const ProgramTrace& trace) {
  ModelSpec model;
  model.layers = 2;
  for (const char* block : {"", "Block"}) {
    try {
      const TracedLayers layers = traced_layers(trace, model, 1, block);
      for (const auto* times : {&layers.forward_s, &layers.backward_s}) {
        for (const auto& [kind, values] : *times) {
          for (const double value : values)
            if (!(value >= 0)) broken("a layer takes less than no time");
        }
      }
    } catch (const InputError&) {
      if (*block != '\0') throw;
    }
  }
}

void pytorch_trace(const std::string& input) {
  static const Directory directory({"trace.json"});
  directory.fill({{"trace.json", input}});
  layers_of_trace(read_kineto_trace(directory.path("trace.json")));
}

void nsys_report(const std::string& input) {
  static const Directory directory({"ranges.csv"});
  directory.fill({{"ranges.csv", input}});
  layers_of_trace(read_nsys_trace(directory.path("ranges.csv")));
}

// What slurmctld and Slurm's programs print.
void slurm_text(const std::string& input) {
  parse_gres(input);
  parse_index_ranges(input);
  gpus_of_request(input, input, 2);
  memory_mb_in(input);
  submitted_id(input);
  promised_start(input);
  job_in_scontrol(input);
  node_in_scontrol(input);
  shares_in_scontrol(input);
  parse_association_use(input);
  may_fail([&] {
    for (const int cpus : parse_cpus_per_node(input))
      if (cpus < 0) broken("a node has less than no processor");
  });
  satisfies({"big", "rack1"}, input);
}

// What is read is written and read as the same, whoever wrote it.
void setup_cache(const std::string& input) {
  static const Directory directory({"setup-c.json"});
  constexpr int64_t kNow = 1000;
  directory.fill({{"setup-c.json", input}});
  const SetupCache cache("c", directory.root());
  const std::optional<ClusterSetup> read = cache.find(kNow);
  if (!read) return;
  cache.keep(*read, kNow);
  if (cache.find(kNow) != read) broken("the setup of the cluster changes when it is kept");
}

// What users write on command lines: a bundle with a value for each.
void submission(const std::string& input) {
  const auto values = split_bundle(input);
  OptionValues options;
  for (const auto& [name, value] : values) {
    if (name != "script" && name != "limits") options[name] = value.substr(0, value.find('\n'));
  }
  may_fail<InputError>([&] { parse_submit_options(options); });
  for (const auto& option : options) {
    may_fail<InputError>([&] { parse_deadline(option.second, 1'700'000'000); });
    may_fail<InputError>([&] { parse_max_nodes(option.second); });
  }
  if (const auto limits = values.find("limits"); limits != values.end())
    may_fail<InputError>([&] { parse_limits(limits->second, JobSpec()); });
  if (const auto script = values.find("script"); script != values.end()) {
    is_job_spec(script->second);
    refuse_components(script->second, "script");
  }
}

}  // namespace

const std::map<std::string, Target>& targets() {
  static const std::map<std::string, Target> all = {{"control_message", control_message},
                                                    {"handshake", handshake},
                                                    {"data_connection", data_connection},
                                                    {"sealed_stream", sealed_stream},
                                                    {"foreign_stream", foreign_stream},
                                                    {"checkpoint_manifest", checkpoint_manifest},
                                                    {"shard", shard},
                                                    {"job_secrets", job_secrets},
                                                    {"run_directory", run_directory},
                                                    {"pytorch_trace", pytorch_trace},
                                                    {"nsys_report", nsys_report},
                                                    {"slurm_text", slurm_text},
                                                    {"setup_cache", setup_cache},
                                                    {"submission", submission}};
  return all;
}

}  // namespace sailor::fuzz
