// The control channel over loopback: who gets in, what arrives, and when a peer without a lease gives up.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <thread>
#include <zmq.hpp>

#include "trainer/control/control_client.h"
#include "trainer/control/control_server.h"

namespace sailor {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

ControlServer::Options loopback(double lease_s) {
  return {.bind_address = "127.0.0.1", .lease_s = lease_s, .lease_period_s = 0.05};
}

Hello hello_of(int rank) {
  return {.role = ControlRole::rank, .rank = rank, .node = "n1", .host = "h", .pid = 42, .generation = 1};
}

// Polls until `wanted` messages have arrived or the time is up.
std::vector<ControlMessage> receive(ControlServer& server, size_t wanted, std::chrono::milliseconds limit) {
  std::vector<ControlMessage> messages;
  const auto end = Clock::now() + limit;
  while (messages.size() < wanted && Clock::now() < end) {
    for (auto& received : server.poll(20ms)) messages.push_back(received.message);
  }
  return messages;
}

TEST(ControlMessage, EveryKindSurvivesTheWire) {
  const StepReport step{.rank = 3,
                        .step = 7,
                        .loss = 2.5,
                        .gradient_norm = 1.25,
                        .learning_rate = 1e-3,
                        .loss_scale = 1024,
                        .skipped = true,
                        .spikes = 2,
                        .layer_norms = {0.5, 0.25},
                        .gradient_signal = 0.125,
                        .gradient_noise = 8,
                        .validation = {{"", 3.5}, {"code", 2.5}},
                        .data_digest = int64_t{1} << 40,
                        .step_s = 0.5,
                        .phases_s = {{"forward", 0.25}},
                        .peak_rss_bytes = int64_t{1} << 40,
                        .max_in_flight = 4,
                        .tasks = {{TaskKind::backward, 2, 1.25, 1.5}, {TaskKind::sync, -1, 2, 3}}};
  const auto back = std::get<StepReport>(parse_control_message(to_json(step)));
  EXPECT_EQ(back.rank, 3);
  EXPECT_EQ(back.step, 7);
  EXPECT_EQ(back.loss, 2.5);
  EXPECT_EQ(back.learning_rate, 1e-3);
  EXPECT_EQ(back.loss_scale, 1024);
  EXPECT_TRUE(back.skipped);
  EXPECT_EQ(back.spikes, 2);
  EXPECT_EQ(back.layer_norms, (std::vector<double>{0.5, 0.25}));
  EXPECT_EQ(back.gradient_signal, 0.125);
  EXPECT_EQ(back.gradient_noise, 8);
  EXPECT_EQ(back.validation, (ValidationLosses{{"", 3.5}, {"code", 2.5}}));
  EXPECT_EQ(back.data_digest, int64_t{1} << 40);
  EXPECT_EQ(back.tasks, step.tasks);
  EXPECT_EQ(back.phases_s.at("forward"), 0.25);
  EXPECT_EQ(back.peak_rss_bytes, int64_t{1} << 40);
  const auto ended = std::get<ProcessEnded>(parse_control_message(to_json(ProcessEnded{"n2", 17, 9})));
  EXPECT_EQ(ended.node, "n2");
  EXPECT_EQ(ended.wait_status, 9);
  const auto note =
      std::get<Note>(parse_control_message(to_json(Note{.rank = 1, .step = 50, .text = "step-50 written"})));
  EXPECT_EQ(note.rank, 1);
  EXPECT_EQ(note.step, 50);
  EXPECT_EQ(note.text, "step-50 written");
  const auto failure = std::get<Failure>(parse_control_message(to_json(Failure{.rank = 1,
                                                                               .node = "n",
                                                                               .pid = 2,
                                                                               .text = "x",
                                                                               .peer_lost = true,
                                                                               .lost_peer = 4,
                                                                               .device_failed = true,
                                                                               .gpu_usable = false})));
  EXPECT_TRUE(failure.device_failed);
  EXPECT_FALSE(failure.gpu_usable);
  EXPECT_TRUE(failure.peer_lost);
  EXPECT_EQ(failure.lost_peer, 4);
}

TEST(ControlMessage, ANumberThatItsTypeDoesNotHoldIsRefused) {
  for (const char* generation : {"1e300", "3000000000", "1.5", "-3000000000"}) {
    const std::string text =
        R"({"type": "lease", "seconds": 1, "generation": )" + std::string(generation) + "}";
    EXPECT_THROW(parse_control_message(text), std::runtime_error) << generation;
  }
  EXPECT_EQ(std::get<Lease>(parse_control_message(R"({"type": "lease", "generation": 3, "seconds": 1})"))
                .generation,
            3);
}

TEST(ControlMessage, OrdersForOtherProgramsSurviveTheWire) {
  const auto start = std::get<StartPrograms>(
      parse_control_message(to_json(StartPrograms{"n1", 2, {"python", "a b.py"}, {{"MASTER_PORT", "17"}}})));
  EXPECT_EQ(start.node, "n1");
  EXPECT_EQ(start.generation, 2);
  EXPECT_EQ(start.command, (std::vector<std::string>{"python", "a b.py"}));
  EXPECT_EQ(start.environment.at("MASTER_PORT"), "17");
  const auto signal =
      std::get<SignalPrograms>(parse_control_message(to_json(SignalPrograms{"n1", 2, 15, 30.0})));
  EXPECT_EQ(signal.generation, 2);
  EXPECT_EQ(signal.signal, 15);
  EXPECT_EQ(signal.kill_after_s, 30);
  EXPECT_EQ(
      std::get<SignalPrograms>(parse_control_message(to_json(SignalPrograms{"n1", 2, 10, {}}))).kill_after_s,
      std::nullopt);
  EXPECT_EQ(std::get<ProgramsReport>(parse_control_message(to_json(ProgramsReport{"n1", 2, {}}))).exit_code,
            std::nullopt);
  const auto report = std::get<ProgramsReport>(parse_control_message(to_json(ProgramsReport{"n1", 2, 7})));
  EXPECT_EQ(report.node, "n1");
  EXPECT_EQ(report.generation, 2);
  EXPECT_EQ(report.exit_code, 7);
}

TEST(ControlMessage, GenerationsSurviveTheWireWithTheirPlan) {
  Generation generation{.number = 3,
                        .base = 1,
                        .ranks = {{"n1", 17, "10.0.0.1", 4711}, {"n2", 18, "10.0.0.2", 4712, true}},
                        .scope = "generation-3",
                        .why = "rank 2 is gone"};
  generation.plan.model = "m";
  generation.plan.global_batch = 4;
  generation.plan.microbatch = 2;
  PlanStage stage;
  stage.end_layer = 3;
  stage.gpu_type = "A";
  stage.zone = "z";
  stage.node = "n1";
  stage.gpus = {0};
  generation.plan.pipelines = {{2, {stage}}};
  const auto back = std::get<Generation>(parse_control_message(to_json(generation)));
  EXPECT_EQ(back.number, 3);
  EXPECT_EQ(back.base, 1);
  EXPECT_EQ(back.ranks, generation.ranks);
  EXPECT_EQ(back.scope, generation.scope);
  EXPECT_EQ(back.plan.pipelines.at(0).stages.at(0).node, "n1");
  const auto interrupt = std::get<Interrupt>(
      parse_control_message(to_json(Interrupt{.generation = 2, .after_step = 9, .save = true})));
  EXPECT_EQ(interrupt.after_step, 9);
  EXPECT_TRUE(interrupt.save);
  const auto idle =
      std::get<Idle>(parse_control_message(to_json(Idle{.generation = 2, .rank = 1, .steps_done = 7})));
  EXPECT_EQ(idle.steps_done, 7);
  const auto started = std::get<Started>(parse_control_message(to_json(Started{.generation = 2,
                                                                               .rank = 1,
                                                                               .steps_done = 7,
                                                                               .state_from = "peers",
                                                                               .bytes_received = 5,
                                                                               .groups_s = 0.5,
                                                                               .state_s = 0.25,
                                                                               .pid = 17,
                                                                               .start_ticks = 99,
                                                                               .device_contexts = 1})));
  EXPECT_EQ(started.state_from, "peers");
  EXPECT_EQ(started.start_ticks, 99);
  EXPECT_EQ(started.device_contexts, 1);
  const auto start = std::get<StartProcess>(parse_control_message(to_json(StartProcess{"n1", "a1", 2})));
  EXPECT_EQ(start.place, "a1");
  EXPECT_EQ(start.gpu, 2);
  EXPECT_EQ(std::get<EndProcess>(parse_control_message(to_json(EndProcess{"n1", 17}))).pid, 17);
  EXPECT_EQ(std::get<Leaving>(parse_control_message(to_json(Leaving{"n1", 25}))).grace_s, 25);
}

TEST(ControlMessage, ADivergedLossIsNotAnError) {
  StepReport step;
  step.loss = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(*std::get<StepReport>(parse_control_message(to_json(step))).loss));
}

TEST(ControlMessage, TextThatIsNotUtf8IsCarriedNotFatal) {
  EXPECT_NO_THROW(parse_control_message(to_json(Failure{.text = "bad \xff byte"})));
}

TEST(ControlMessage, GarbageIsRefusedWithItsText) {
  EXPECT_THROW(parse_control_message("{"), std::runtime_error);
  EXPECT_THROW(parse_control_message(R"({"type":"nonsense"})"), std::runtime_error);
}

TEST(ControlChannel, MessagesArriveInOrderAndStopReachesThePeer) {
  ControlServer server(loopback(5));
  std::atomic<int> stopped = -1;
  ControlClient client(server.endpoint(), "127.0.0.1",
                       {.lease_expired = [] { FAIL() << "lease expired"; },
                        .stop = [&](const Stop& s) { stopped = s.exit_code; }});
  client.send(hello_of(2));
  for (int step = 1; step <= 100; ++step) client.send(StepReport{.rank = 2, .step = step});
  const auto messages = receive(server, 101, 5s);
  ASSERT_EQ(messages.size(), 101u);
  EXPECT_EQ(std::get<Hello>(messages[0]).rank, 2);
  for (int step = 1; step <= 100; ++step) EXPECT_EQ(std::get<StepReport>(messages[step]).step, step);
  server.broadcast(Stop{3, "enough"});
  for (int i = 0; i < 100 && stopped < 0; ++i) server.poll(20ms);
  EXPECT_EQ(stopped, 3);
}

TEST(ControlChannel, APeerWithAnotherJobsClientKeyIsNotHeard) {
  ControlServer server(loopback(0.5));
  ControlEndpoint endpoint = server.endpoint();
  endpoint.client = make_curve_keys();
  std::atomic<bool> expired = false;
  ControlClient client(endpoint, "127.0.0.1", {.lease_expired = [&] { expired = true; }, .stop = nullptr});
  client.send(hello_of(0));
  EXPECT_TRUE(receive(server, 1, 1500ms).empty());
  EXPECT_EQ(server.num_peers(), 0);
  EXPECT_TRUE(expired);
}

TEST(ControlChannel, APeerThatExpectsAnotherControllerDoesNotTalkToThisOne) {
  ControlServer server(loopback(0.5));
  ControlEndpoint endpoint = server.endpoint();
  endpoint.server_public_key = make_curve_keys().public_key;
  std::atomic<bool> expired = false;
  ControlClient client(endpoint, "127.0.0.1", {.lease_expired = [&] { expired = true; }, .stop = nullptr});
  client.send(hello_of(0));
  EXPECT_TRUE(receive(server, 1, 1500ms).empty());
  EXPECT_TRUE(expired);
}

TEST(ControlChannel, TheLeaseHoldsWhileTheControllerPollsAndEndsWhenItStops) {
  ControlServer server(loopback(0.4));
  std::atomic<bool> expired = false;
  ControlClient client(server.endpoint(), "127.0.0.1",
                       {.lease_expired = [&] { expired = true; }, .stop = nullptr});
  client.send(hello_of(0));
  const auto start = Clock::now();
  while (Clock::now() - start < 1500ms) server.poll(20ms);
  EXPECT_FALSE(expired) << "the lease must be renewed while the controller lives";
  const auto silent = Clock::now();
  while (!expired && Clock::now() - silent < 5s) std::this_thread::sleep_for(10ms);
  EXPECT_TRUE(expired);
  EXPECT_LT(Clock::now() - silent, 3s);
}

TEST(ControlChannel, ASilentPeerIsNoticed) {
  ControlServer server(loopback(5));
  {
    ControlClient client(server.endpoint(), "127.0.0.1", {});
    client.send(hello_of(0));
    ASSERT_EQ(receive(server, 1, 5s).size(), 1u);
    for (int i = 0; i < 20; ++i) server.poll(20ms);
    EXPECT_TRUE(server.silent_peers(0.3).empty()) << "a peer that answers leases is not silent";
  }
  for (int i = 0; i < 30; ++i) server.poll(20ms);
  EXPECT_EQ(server.silent_peers(0.3).size(), 1u);
}

TEST(ControlChannel, APeerWithoutAConnectionIsSilentSoon) {
  ControlServer server(loopback(2));
  constexpr double kNever_s = 1e9;  // for those that have a connection
  std::vector<std::string> peers;
  const auto receive_hello = [&] {
    for (int i = 0; i < 500; ++i)
      for (const auto& received : server.poll(20ms)) return peers.push_back(received.peer);
  };
  auto ended = std::make_unique<ControlClient>(server.endpoint(), "127.0.0.1", ControlClient::Callbacks{});
  ended->send(hello_of(0));
  receive_hello();
  ControlClient other(server.endpoint(), "127.0.0.1", {});
  other.send(hello_of(1));
  receive_hello();
  ended.reset();
  // It may get the descriptor of the connection that has ended.
  ControlClient next(server.endpoint(), "127.0.0.1", {});
  next.send(hello_of(2));
  receive_hello();
  ASSERT_EQ(peers.size(), 3u);
  for (int i = 0; i < 1500 && server.silent_peers(kNever_s).empty(); ++i) server.poll(20ms);
  for (int i = 0; i < 50; ++i) server.poll(20ms);
  EXPECT_EQ(server.silent_peers(kNever_s), std::vector<std::string>{peers[0]});
}

TEST(ControlChannel, AControllerThatDidNotPollTakesNobodyForSilent) {
  ControlServer server(loopback(5));
  ControlClient client(server.endpoint(), "127.0.0.1", {});
  client.send(hello_of(0));
  ASSERT_EQ(receive(server, 1, 5s).size(), 1u);
  for (int i = 0; i < 5; ++i) server.poll(20ms);
  std::this_thread::sleep_for(800ms);  // no lease is given out meanwhile
  server.poll(20ms);
  EXPECT_TRUE(server.silent_peers(0.3).empty());
}

// A peer that has the job's keys, and says what it likes.
struct RawPeer {
  zmq::context_t context{1};
  zmq::socket_t socket{context, zmq::socket_type::dealer};
  explicit RawPeer(const ControlEndpoint& endpoint) {
    socket.set(zmq::sockopt::linger, 0);
    socket.set(zmq::sockopt::curve_serverkey, endpoint.server_public_key);
    socket.set(zmq::sockopt::curve_publickey, endpoint.client.public_key);
    socket.set(zmq::sockopt::curve_secretkey, endpoint.client.secret_key);
    socket.connect("tcp://127.0.0.1:" + std::to_string(endpoint.port));
  }
  void say(const std::string& text) { socket.send(zmq::buffer(text), zmq::send_flags::none); }
};

TEST(ControlChannel, APeerThatMisbehavesIsDroppedAndTheOthersGoOn) {
  const std::string hello = to_json(hello_of(1)), step = to_json(StepReport{.rank = 1, .step = 1});
  const std::vector<std::vector<std::string>> misdeeds = {
      {"1 " + hello, "2 {not json"},             // not parseable
      {"1 " + hello, "2 " + step, "2 " + step},  // replayed
      {"1 " + hello, "3 " + step, "2 " + step},  // replayed later
      {"1 " + hello, step},                      // without a number
      {"1 " + hello, "2 " + hello},              // twice the same introduction
  };
  for (const auto& misdeed : misdeeds) {
    ControlServer server(loopback(5));
    ControlClient good(server.endpoint(), "127.0.0.1", {});
    good.send(hello_of(0));
    ASSERT_EQ(receive(server, 1, 5s).size(), 1u);
    RawPeer bad(server.endpoint());
    for (const std::string& text : misdeed) bad.say(text);
    std::vector<ControlServer::Dropped> dropped;
    for (int i = 0; i < 200 && dropped.empty(); ++i) {
      server.poll(20ms);
      dropped = server.take_dropped();
    }
    ASSERT_EQ(dropped.size(), 1u) << misdeed.back();
    EXPECT_FALSE(dropped[0].reason.empty());
    EXPECT_EQ(server.num_peers(), 1);
    bad.say("9 " + step);
    good.send(StepReport{.rank = 0, .step = 7});
    const auto heard = receive(server, 1, 5s);
    ASSERT_EQ(heard.size(), 1u) << "the dropped one is not heard, the other is";
    EXPECT_EQ(std::get<StepReport>(heard[0]).step, 7);
  }
}

TEST(ControlChannel, AnOversizedMessageGetsNowhere) {
  ControlServer server(loopback(5));
  RawPeer bad(server.endpoint());
  bad.say("1 " + to_json(hello_of(1)));
  ASSERT_EQ(receive(server, 1, 5s).size(), 1u);
  bad.say("2 " + std::string(size_t{17} << 20, ' '));
  ControlClient good(server.endpoint(), "127.0.0.1", {});
  good.send(hello_of(0));
  const auto heard = receive(server, 1, 5s);
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_EQ(std::get<Hello>(heard[0]).rank, 0);
}

TEST(ControlChannel, ALeaseIsAnsweredWithTheTimeInsideTheStep) {
  ControlServer server(loopback(5));
  ControlClient client(server.endpoint(), "127.0.0.1",
                       {.lease_expired = nullptr, .stop = nullptr, .in_step_s = [] { return 3.5; }});
  client.send(hello_of(0));
  std::string peer;
  for (int i = 0; i < 50; ++i) {
    for (const auto& received : server.poll(20ms)) peer = received.peer;
  }
  EXPECT_DOUBLE_EQ(server.in_step_s(peer), 3.5);
  // What it said of the generation before is no news of this one.
  server.set_generation(2);
  EXPECT_DOUBLE_EQ(server.in_step_s(peer), 0);
  for (int i = 0; i < 75; ++i) server.poll(20ms);
  EXPECT_DOUBLE_EQ(server.in_step_s(peer), 3.5);
}

TEST(ControlEndpoint, SurvivesTheEnvironment) {
  ControlServer server(loopback(7));
  const std::string secret = server.endpoint().client.secret_key;
  for (const auto& [name, value] : server.endpoint().to_environment()) {
    EXPECT_NE(value, secret) << name;
    setenv(name.c_str(), value.c_str(), 1);
  }
  const ControlEndpoint back = ControlEndpoint::from_environment(secret);
  EXPECT_EQ(back.addresses, server.endpoint().addresses);
  EXPECT_EQ(back.port, server.endpoint().port);
  EXPECT_EQ(back.client.public_key, server.endpoint().client.public_key);
  EXPECT_EQ(back.client.secret_key, secret);
  EXPECT_EQ(back.lease_s, 7);
}

TEST(ControlEndpoint, TheRouteIsTheFirstAddressThatAnswers) {
  ControlServer server(loopback(5));
  ControlEndpoint endpoint = server.endpoint();
  endpoint.addresses = {"not an address", "127.0.0.1"};
  const ControlRoute route = find_control_route(endpoint, 5);
  EXPECT_EQ(route.controller_address, "127.0.0.1");
  EXPECT_EQ(route.local_address, "127.0.0.1");
}

TEST(ControlEndpoint, NoAnswerIsAnErrorThatNamesTheAddresses) {
  ControlEndpoint endpoint;
  endpoint.addresses = {"127.0.0.1"};
  endpoint.port = 1;
  try {
    find_control_route(endpoint, 0.2);
    FAIL();
  } catch (const std::runtime_error& e) {
    EXPECT_NE(std::string(e.what()).find("127.0.0.1"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace sailor
