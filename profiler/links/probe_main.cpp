// `sailor probe`: measures the links between the ranks that it starts, or that mpirun or srun started, or
// shows what was measured.
#include <arpa/inet.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <sstream>

#include "planner/cli/program.h"
#include "planner/scheduler/scheduler.h"
#include "planner/spec/error.h"
#include "planner/spec/quantity.h"
#include "planner/spec/snapshot.h"
#include "planner/spec/text.h"
#include "planner/spec/text_file.h"
#include "profiler/links/probe.h"
#include "profiler/links/probe_gpus.h"
#include "profiler/links/probe_launch.h"
#include "profiler/links/probe_report.h"
#include "profiler/profile_directory.h"
#include "trainer/comm/bootstrap.h"
#include "trainer/comm/socket_plane.h"
#include "trainer/control/control_endpoint.h"
#include "trainer/launch/agent.h"
#include "trainer/process/parent_death.h"
#include "trainer/topology/gpu_environment.h"
#include "trainer/topology/nic_environment.h"
#include "trainer/topology/topology_report.h"

namespace {

using namespace sailor;

struct Arguments {
  std::string show;
  bool topology = false;
  std::string xml;
  std::string format = "table";
  std::string directory;
  std::string gpu_type = "cpu";
  std::string zone;
  std::string cluster;
  std::string network;
  int ranks = 0;
  bool on_nodes = false;
  int per_node = 0;  // 0 = as many as it has GPUs
  bool quiet = false;
  ProbeRequest request;
};

// "10.1.0.0/16"
bool in_network(const std::string& address, const std::string& network) {
  const auto slash = network.find('/');
  const std::optional<double> bits =
      slash == std::string::npos ? 32 : parse_number(network.substr(slash + 1));
  in_addr of_network{}, of_address{};
  if (!bits || *bits < 0 || *bits > 32 || *bits != static_cast<int>(*bits) ||
      inet_pton(AF_INET, network.substr(0, slash).c_str(), &of_network) != 1)
    throw InputError("--network: must be an IPv4 network like 10.1.0.0/16, is " + in_quotes(network));
  if (inet_pton(AF_INET, address.c_str(), &of_address) != 1) return false;
  const uint32_t mask = *bits > 0 ? ~uint32_t{0} << (32 - static_cast<int>(*bits)) : 0;
  return ((ntohl(of_network.s_addr) ^ ntohl(of_address.s_addr)) & mask) == 0;
}

// Where other ranks reach this one.
std::string own_address(const std::string& network) {
  const std::vector<std::string> addresses = local_ipv4_addresses();
  if (network.empty()) return addresses.front();
  for (const std::string& address : addresses)
    if (in_network(address, network)) return address;
  throw std::runtime_error(
      fmt::format("node {} has no address in {}, only {}", node_name(), network, fmt::join(addresses, ", ")));
}

// Memory that this node can give without swapping.
int64_t available_bytes() {
  std::istringstream lines(read_text_file("/proc/meminfo"));
  std::string key;
  int64_t kib = 0;
  while (lines >> key >> kib) {
    if (key == "MemAvailable:") return kib << 10;
    lines.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  throw std::runtime_error("/proc/meminfo does not say what memory is available");
}

// What a rank tells the others of itself: a rank card, then the rest, on one line.
struct Card {
  RankCard rank;
  ProbeRank what;
  int64_t available_bytes = 0;
};

std::string to_text(const Card& card) {
  return fmt::format("{} {} {} {}", to_text(card.rank), card.what.gpu_type,
                     card.what.zone.empty() ? "-" : card.what.zone, card.available_bytes);
}

Card parse_card(const std::string& text) {
  Card card;
  card.rank = parse_rank_card(text);
  std::istringstream in(text);
  std::string skipped;
  for (int i = 0; i < 4; ++i) in >> skipped;
  if (!(in >> card.what.gpu_type >> card.what.zone >> card.available_bytes))
    throw std::runtime_error("the ranks were not all started by the same sailor probe");
  if (card.what.zone == "-") card.what.zone.clear();
  card.what.node = card.rank.node;
  return card;
}

ProbeRank own_kind(const Arguments& arguments) {
  const std::string node = node_name();
  if (const std::optional<NodeKind> kind = kind_of_node(node)) return {node, kind->gpu_type, kind->zone};
  if (arguments.cluster.empty()) return {node, arguments.gpu_type, arguments.zone};
  const Snapshot snapshot = load_snapshot(arguments.cluster);
  const SnapshotNode* known = snapshot.find(node);
  if (known == nullptr)
    throw InputError({arguments.cluster, 0}, fmt::format("nodes: has no node {}, which a rank is on", node));
  return {node, known->gpu_type, known->zone};
}

// Ranks hold one buffer each, and sums take as much again for what others send.
int64_t affordable_bytes(const std::vector<Card>& cards) {
  int64_t least = INT64_MAX;
  for (const Card& card : cards) {
    const auto on_node = std::count_if(cards.begin(), cards.end(),
                                       [&](const Card& c) { return c.rank.node == card.rank.node; });
    least = std::min(least, card.available_bytes / (4 * on_node));
  }
  return least;
}

std::string how_measured(const std::vector<Card>& cards) {
  std::set<std::string> nodes;
  for (const Card& card : cards) nodes.insert(card.rank.node);
  const std::string where =
      nodes.size() > 4 ? fmt::format("{} nodes", nodes.size()) : fmt::format("{}", fmt::join(nodes, ", "));
  return fmt::format("{:%Y-%m-%d %H:%M} UTC on {}, {} ranks", fmt::gmtime(std::chrono::system_clock::now()),
                     where, cards.size());
}

int run_rank(Arguments arguments) {
  end_with_parent();  // a launcher that is killed leaves no rank that goes on to write the profile
  ProbeRequest& request = arguments.request;
  set_gpu_environment();
  set_nic_environment(own_address(arguments.network));
  const ProbeRank kind = own_kind(arguments);
  Listener listener(own_address(arguments.network));
  const BootstrapResult world = bootstrap(to_text(Card{
      {{own_address(arguments.network), listener.port()}, kind.node, getpid()}, kind, available_bytes()}));
  listener.start(world.secret);
  std::vector<Card> cards;
  std::vector<Endpoint> endpoints;
  std::vector<ProbeRank> ranks;
  for (const std::string& text : world.cards) {
    cards.push_back(parse_card(text));
    endpoints.push_back(cards.back().rank.endpoint);
    ranks.push_back(cards.back().what);
  }
  const bool speaks = world.rank == 0;
  if (world.size < 2)
    throw InputError("one rank has nothing to measure: start several, e.g. with --per-node or --ranks");
  if (const int64_t most = affordable_bytes(cards); most < request.max_bytes) {
    if (speaks)
      std::cerr << fmt::format("note: messages are limited to {} MiB by the memory of a rank's node\n",
                               most >> 20);
    request.max_bytes = most;
  }
  request.measured = how_measured(cards);
  CommOptions options;
  options.deadline = std::chrono::seconds(600 + static_cast<int64_t>(request.seconds));
  SocketFactory factory(world.rank, endpoints, world.secret, listener, options);
  const std::unique_ptr<Gpu> gpu = open_gpus(factory, request, ranks);
  const std::unique_ptr<CommFactory> plane = gpu ? gpu->plane(factory, options) : nullptr;
  std::optional<DevicePlane> on;
  if (gpu) on.emplace(DevicePlane{gpu->device(), *plane});
  const auto tell = [&arguments](const std::string& line) {
    if (!arguments.quiet) std::cerr << line << std::endl;
  };
  const ProbeOutcome outcome = probe(factory, ranks, request, tell, on);
  if (!speaks) return kDone;
  for (const std::string& note : outcome.notes) std::cerr << "note: " << note << '\n';
  if (outcome.measurements == 0)
    std::cerr << "note: everything is already measured; --again measures it again\n";
  if (outcome.imprecise > 0)
    std::cerr << fmt::format(
        "note: {} of {} measurements are less precise than 2 % because time was up; the next run repeats "
        "them\n",
        outcome.imprecise, outcome.measurements);
  std::cout << request.file << '\n';
  return kDone;
}

int run(Arguments arguments, int argc, char** argv) {
  if (!arguments.show.empty()) {
    std::cout << probe_report(load_network_file(arguments.show));
    return kDone;
  }
  if (arguments.topology || !arguments.xml.empty()) {
    const MachineTopology machine =
        arguments.xml.empty() ? discover_topology() : load_topology(arguments.xml);
    std::cout << (arguments.format == "json" ? topology_json(machine) : topology_table(machine));
    return kDone;
  }
  if (arguments.directory.empty()) arguments.directory = default_profile_directory();
  arguments.request.file = arguments.directory + "/network.json";
  if (!is_launched()) {
    const std::vector<std::string> words(argv + 1, argv + argc);
    if (arguments.on_nodes) become_allocation(words);
    if (arguments.ranks > 0) become_ranks_here(arguments.ranks, words);
    if (site_scheduler().own_job()) become_ranks_of_job(arguments.per_node, words);
    throw InputError(
        "use --on-nodes for free nodes of the cluster, --ranks N for N ranks on this machine, or start it "
        "inside a Slurm job");
  }
  return run_rank(std::move(arguments));
}

void add_options(CLI::App& app, Arguments& arguments) {
  app.add_option("--show", arguments.show, "print a network profile; measure nothing")->type_name("FILE");
  app.add_flag("--topology", arguments.topology,
               "print sockets, GPUs and network cards of this machine, and where ranks are bound");
  app.add_option("--xml", arguments.xml, "the same for a machine recorded with `lstopo FILE.xml`")
      ->type_name("FILE");
  app.add_option("--format", arguments.format, "output format of the topology: table or json")
      ->check(CLI::IsMember({"table", "json"}));
  app.add_option("--out", arguments.directory, "profile directory (default: the first of the site config)")
      ->type_name("DIR");
  app.add_option("--gpu-type", arguments.gpu_type, "GPU type of the nodes")->capture_default_str();
  app.add_option("--zone", arguments.zone, "zone of the nodes (default: the links apply to every zone)");
  app.add_option("--cluster", arguments.cluster, "read GPU types and zones of nodes from this snapshot")
      ->type_name("FILE");
  app.add_option("--network", arguments.network, "use the nodes' addresses in this IPv4 network")
      ->type_name("NET/BITS");
  app.add_option_function<std::string>(
         "--max-bytes",
         [&arguments](const std::string& text) {
           const std::optional<double> bytes = parse_bytes(text);
           if (!bytes || *bytes < 4096 || *bytes > 1e12)
             throw InputError("--max-bytes: must be a size from 4KiB to 1TB, is " + in_quotes(text));
           arguments.request.max_bytes = static_cast<int64_t>(*bytes);
         },
         "largest message (default: 1GiB)")
      ->type_name("SIZE");
  app.add_option("--seconds", arguments.request.seconds, "approximate time limit in seconds")
      ->check(cli::within(1.0, 86400.0))
      ->capture_default_str();
  app.add_flag_callback(
      "--messages-only", [&arguments] { arguments.request.collectives = false; },
      "do not measure collectives");
  app.add_option_function<std::string>(
         "--transport",
         [&arguments](const std::string& text) {
           arguments.request.only = text == "nccl" ? Transport::nccl : Transport::sockets;
         },
         "measure only this transport: nccl or sockets (default: NCCL between GPUs, then sockets)")
      ->check(CLI::IsMember({"nccl", "sockets"}));
  app.add_flag("-q,--quiet", arguments.quiet, "print only notes and errors on stderr");
  app.add_flag("--again", arguments.request.again, "measure again what the file already has");
  CLI::Option* here = app.add_option("--ranks", arguments.ranks, "number of ranks to start on this machine")
                          ->check(cli::within(2, 64));
  app.add_flag("--on-nodes", arguments.on_nodes,
               "start ranks on two free nodes of every GPU type and zone of the cluster, as a Slurm job")
      ->excludes(here);
  app.add_option("--per-node", arguments.per_node,
                 "number of ranks on each node of a Slurm job (default: its GPUs; 2 without GPUs)")
      ->check(cli::within(1, 64));
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{
      "Measures bandwidth and latency between ranks, for the planner; shows network profiles and the "
      "topology of this machine",
      "sailor probe"};
  add_options(app, arguments);
  return cli::run_program(app, argc, argv, [&] { return run(std::move(arguments), argc, argv); });
}
