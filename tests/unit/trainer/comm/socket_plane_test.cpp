// What only sockets have: strangers, secrets, processes that die.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>

#include "planner/process/file_descriptor.h"
#include "tests/unit/trainer/comm/ranks.h"
#include "trainer/comm/handshake.h"

namespace sailor {
namespace {

using namespace std::chrono_literals;

// From an address of this machine.
FileDescriptor connect_to(uint16_t port, const char* from = "127.0.0.1") {
  FileDescriptor fd(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  EXPECT_EQ(::inet_pton(AF_INET, from, &address.sin_addr), 1);
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return fd;
}

TEST(SocketPlane, GarbageOnThePortDisturbsNobody) {
  TestJob job("socket", 3);
  std::vector<FileDescriptor> strangers;
  for (int i = 0; i < 30; ++i) {
    strangers.push_back(connect_to(job.port(i % 3)));
    std::string garbage = i % 3 == 0 ? std::string(10'000, 'x') : i % 3 == 1 ? "GET / HTTP/1.1\r\n\r\n" : "";
    if (i % 5 == 0)
      garbage = std::string("SAILOR\x01\n") + std::string(200, '\xff');  // right magic, absurd lengths
    ::send(strangers.back().get(), garbage.data(), garbage.size(), MSG_NOSIGNAL);
  }
  job.run([](CommFactory& factory) {
    const auto comm = factory.create("c", all_ranks(3));
    float x = 1;
    comm->all_reduce(&x, 1, ElementType::f32, ReduceOp::sum);
    EXPECT_EQ(x, 3.0f);
  });
}

TEST(SocketPlane, AWrongSecretIsRefusedOnBothSides) {
  Listener first("127.0.0.1"), second("127.0.0.1");
  const JobSecret ours = make_job_secret(), theirs = make_job_secret();
  first.start(ours);
  second.start(theirs);
  const std::vector<Endpoint> endpoints = {{"127.0.0.1", first.port()}, {"127.0.0.1", second.port()}};
  SocketFactory good(0, endpoints, ours, first, {500ms});
  SocketFactory bad(1, endpoints, theirs, second, {500ms});
  std::thread other([&] {
    try {
      bad.create("c", {0, 1});
      ADD_FAILURE() << "joined with a wrong secret";
    } catch (const CommError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("refused the handshake"));
    }
  });
  EXPECT_THROW(good.create("c", {0, 1}), CommError);
  other.join();
}

TEST(Handshake, OnlyTheExactBytesProveTheSecret) {
  const JobSecret secret = make_job_secret();
  const Nonce acceptor = make_nonce(), connector = make_nonce();
  const Introduction who{"generation 3", "tp/0.1", 2, 0};
  const std::string hello = make_hello(secret, who, acceptor, connector);
  ASSERT_EQ(hello_size(hello.substr(0, kHelloHeadBytes)), hello.size());
  const auto read = read_hello(secret, hello, acceptor);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->who, who);
  EXPECT_EQ(read->connector, connector);
  for (std::size_t i = 8; i < hello.size(); ++i) {
    std::string changed = hello;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    const auto size = hello_size(changed.substr(0, kHelloHeadBytes));
    EXPECT_TRUE(size != hello.size() || !read_hello(secret, changed, acceptor)) << "byte " << i;
  }
  EXPECT_FALSE(read_hello(secret, hello, make_nonce())) << "a hello cannot be replayed";
  EXPECT_FALSE(read_hello(make_job_secret(), hello, acceptor));
  const std::string welcome = make_welcome(secret, acceptor, connector);
  EXPECT_TRUE(check_welcome(secret, welcome, acceptor, connector));
  EXPECT_FALSE(check_welcome(secret, welcome, connector, acceptor));
  EXPECT_FALSE(check_welcome(secret, welcome.substr(1), acceptor, connector));
}

TEST(SocketPlane, AKilledProcessIsNoticedAtOnce) {
  Listener mine("127.0.0.1");
  auto theirs = std::make_unique<Listener>("127.0.0.1");
  const JobSecret secret = make_job_secret();
  const std::vector<Endpoint> endpoints = {{"127.0.0.1", mine.port()}, {"127.0.0.1", theirs->port()}};
  const pid_t child = ::fork();  // no threads yet
  if (child == 0) {
    theirs->start(secret);
    SocketFactory factory(1, endpoints, secret, *theirs, {20s});
    const auto comm = factory.create("c", {0, 1});
    comm->barrier();
    ::pause();
    ::_exit(0);
  }
  mine.start(secret);
  theirs.reset();
  SocketFactory factory(0, endpoints, secret, mine, {20s});
  const auto comm = factory.create("c", {0, 1});
  comm->barrier();
  ::kill(child, SIGKILL);
  const auto start = std::chrono::steady_clock::now();
  std::vector<float> x(100'000);
  try {
    comm->all_reduce(x.data(), x.size(), ElementType::f32, ReduceOp::sum);
    ADD_FAILURE() << "summed with a dead rank";
  } catch (const CommError& error) {
    EXPECT_EQ(error.peer(), 1);
    EXPECT_EQ(error.host(), "127.0.0.1");
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, 2s);
  ::waitpid(child, nullptr, 0);
}

// More connections from one address than the listener has places, all silent.
TEST(SocketPlane, SilentConnectionsOfOneAddressDoNotKeepOthersOut) {
  Listener a("127.0.0.1"), b("127.0.0.1");
  const JobSecret secret = make_job_secret();
  a.start(secret);
  b.start(secret);
  std::vector<FileDescriptor> silent;
  for (int i = 0; i < 300; ++i) silent.push_back(connect_to(a.port(), "127.0.0.9"));
  const std::vector<Endpoint> endpoints = {{"127.0.0.1", a.port()}, {"127.0.0.1", b.port()}};
  SocketFactory first(0, endpoints, secret, a, {20s}), second(1, endpoints, secret, b, {20s});
  std::thread other([&] { second.create("c", {0, 1})->barrier(); });
  first.create("c", {0, 1})->barrier();
  other.join();
  // Most of them are still there: nobody waited until their time for the handshake was over.
  size_t open = 0;
  for (const FileDescriptor& fd : silent) {
    char buffer[256];
    ssize_t got;
    while ((got = ::recv(fd.get(), buffer, sizeof buffer, MSG_DONTWAIT)) > 0) {
    }
    open += got < 0 && errno == EAGAIN;
  }
  EXPECT_GT(open, silent.size() / 2);
}

TEST(SocketPlane, OneListenerServesGenerationAfterGeneration) {
  Listener a("127.0.0.1"), b("127.0.0.1");
  const JobSecret secret = make_job_secret();
  a.start(secret);
  b.start(secret);
  const std::vector<Endpoint> endpoints = {{"127.0.0.1", a.port()}, {"127.0.0.1", b.port()}};
  for (int generation = 0; generation < 5; ++generation) {
    const std::string scope = "generation " + std::to_string(generation);
    SocketFactory first(0, endpoints, secret, a, {20s}, scope), second(1, endpoints, secret, b, {20s}, scope);
    std::thread other([&] { second.create("c", {0, 1})->barrier(); });
    first.create("c", {0, 1})->barrier();
    other.join();
  }
}

// Somebody between two ranks: forwards everything of one connection, and changes a byte of what the
// connecting rank sends after the handshake.
class ManInTheMiddle {
 public:
  ManInTheMiddle(uint16_t to, std::size_t changed) : changed_(changed) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    EXPECT_EQ(::bind(listening_.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
    EXPECT_EQ(::listen(listening_.get(), 1), 0);
    EXPECT_EQ(::getsockname(listening_.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this, to] { forward(to); });
  }

  uint16_t port() const { return port_; }
  // Call it once, when the ranks have closed the connection.
  bool end_and_say_whether_it_saw(const std::string& text) {
    thread_.join();
    return seen_.find(text) != std::string::npos;
  }

 private:
  void forward(uint16_t to) {
    const FileDescriptor from(::accept(listening_.get(), nullptr, nullptr));
    const FileDescriptor onward = connect_to(to);
    std::thread back([&] { copy(onward, from, [](std::string&) {}); });
    copy(from, onward, [this](std::string& bytes) {
      const std::size_t before = seen_.size();
      seen_ += bytes;
      if (before <= changed_ && changed_ < seen_.size()) bytes[changed_ - before] ^= 1;
    });
    back.join();
  }
  template <class Change>
  static void copy(const FileDescriptor& from, const FileDescriptor& to, const Change& change) {
    char buffer[4096];
    ssize_t got;
    while ((got = ::recv(from.get(), buffer, sizeof buffer, 0)) > 0) {
      std::string bytes(buffer, static_cast<std::size_t>(got));
      change(bytes);
      if (::send(to.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) break;
    }
    ::shutdown(to.get(), SHUT_RDWR);
    ::shutdown(from.get(), SHUT_RDWR);
  }

  const std::size_t changed_;
  FileDescriptor listening_{::socket(AF_INET, SOCK_STREAM, 0)};
  uint16_t port_ = 0;
  std::string seen_;  // of what the connecting rank sent
  std::thread thread_;
};

// What rank 1 sends rank 0, over somebody who changes a byte; the text of the error, or what arrived.
struct Interception {
  std::string arrived, error;
  bool was_read = false;
};
Interception intercept(bool encrypt, const std::string& text) {
  Listener a("127.0.0.1"), b("127.0.0.1");
  const JobSecret secret = make_job_secret();
  a.start(secret);
  b.start(secret);
  const std::size_t hello = make_hello(secret, {"", "c", 1, 0}, make_nonce(), make_nonce()).size();
  Interception result;
  {
    ManInTheMiddle middle(a.port(), hello + 40);
    const std::vector<Endpoint> endpoints = {{"127.0.0.1", middle.port()}, {"127.0.0.1", b.port()}};
    CommOptions options{20s};
    options.encrypt = encrypt;
    std::thread other([&] {
      SocketFactory factory(1, endpoints, secret, b, options);
      std::string sent = text;
      const auto comm = factory.create("c", {0, 1});
      comm->send(sent.data(), sent.size(), ElementType::u8, 0)->wait();
    });
    SocketFactory factory(0, endpoints, secret, a, options);
    try {
      const auto comm = factory.create("c", {0, 1});  // closed at the end of this block
      result.arrived.resize(text.size());
      comm->recv(result.arrived.data(), text.size(), ElementType::u8, 1)->wait();
    } catch (const CommError& error) {
      result.error = error.what();
    }
    other.join();
    result.was_read = middle.end_and_say_whether_it_saw(text);
  }
  return result;
}

TEST(SocketPlane, WithEncryptionChangedPacketsAreNoticedAndNothingIsRead) {
  const std::string text(200, 'x');
  const Interception plain = intercept(false, text);
  EXPECT_EQ(plain.error, "");
  EXPECT_NE(plain.arrived, text) << "without it, a change arrives";
  EXPECT_TRUE(plain.was_read);
  const Interception encrypted = intercept(true, text);
  EXPECT_THAT(encrypted.error, ::testing::HasSubstr("rank 1"));
  EXPECT_THAT(encrypted.error, ::testing::HasSubstr("sent data that was changed on the way"));
  EXPECT_FALSE(encrypted.was_read);
}

// Every message of rank 0 is held back for 100 ms.
class Slow : public LinkPacer {
 public:
  void take_turn(Passage& passage) override {
    passage.through = true;
    if (passage.from == 0) passage.leaves = passage.at + 100ms;
  }
};

TEST(SocketPlane, AnEmulatedLinkHoldsMessagesBackWhileTheSenderDoesSomethingElse) {
  Slow slow;
  CommOptions options{20s};
  options.links = &slow;
  TestJob job("socket", 2, options);
  job.run([](CommFactory& factory) {
    const auto comm = factory.create("c", all_ranks(2));
    std::vector<char> data(1 << 20, factory.rank() == 0 ? 'x' : ' ');
    comm->barrier();
    const auto start = std::chrono::steady_clock::now();
    if (factory.rank() == 0) {
      const auto sent = comm->send(data.data(), data.size(), ElementType::u8, 1);
      EXPECT_LT(std::chrono::steady_clock::now() - start, 90ms) << "posting does not wait";
      std::this_thread::sleep_for(400ms);
      sent->wait();
    } else {
      comm->recv(data.data(), data.size(), ElementType::u8, 0)->wait();
      const auto took = std::chrono::steady_clock::now() - start;
      EXPECT_EQ(data.back(), 'x');
      EXPECT_GT(took, 50ms);
      EXPECT_LT(took, 390ms) << "the helper sends it, not the sender's wait";
    }
  });
}

// Rank 0 has a card that passes 1 KiB in 20 ms; other ranks' messages take no time.
class Card : public LinkPacer {
 public:
  void take_turn(Passage& passage) override {
    if (passage.from != 0) {
      passage.through = true;
      return;
    }
    EXPECT_LE(passage.at, Clock::now()) << "a turn is asked for when the one before it is over";
    passage.at = free_at_ = std::max(passage.at, free_at_) + 20ms;
    passage.through = ++passage.turns * std::size_t{1024} >= passage.bytes;
    passage.leaves = passage.at;
  }

 private:
  Clock::time_point free_at_{};
};

TEST(SocketPlane, MessagesOnAnEmulatedCardTakeTurns) {
  Card card;
  CommOptions options{20s};
  options.links = &card;
  TestJob job("socket", 3, options);
  job.run([](CommFactory& factory) {
    const auto comm = factory.create("c", all_ranks(3));
    std::vector<char> large(40 << 10, 'x'), small(1 << 10, 'y'), after(1 << 10, 'z');
    comm->barrier();
    const auto start = std::chrono::steady_clock::now();
    const auto took = [&] { return std::chrono::steady_clock::now() - start; };
    if (factory.rank() == 0) {
      const auto first = comm->send(large.data(), large.size(), ElementType::u8, 1);
      const auto second = comm->send(after.data(), after.size(), ElementType::u8, 1);
      const auto third = comm->send(small.data(), small.size(), ElementType::u8, 2);
      first->wait();
      second->wait();
      third->wait();
    } else if (factory.rank() == 1) {
      std::fill(large.begin(), large.end(), ' ');
      comm->recv(large.data(), large.size(), ElementType::u8, 0)->wait();
      EXPECT_GT(took(), 500ms) << "41 turns of 20 ms";
      std::fill(after.begin(), after.end(), ' ');
      comm->recv(after.data(), after.size(), ElementType::u8, 0)->wait();
      EXPECT_EQ(large.back(), 'x') << "messages of one pair stay in order";
      EXPECT_EQ(after.back(), 'z');
    } else {
      std::fill(small.begin(), small.end(), ' ');
      comm->recv(small.data(), small.size(), ElementType::u8, 0)->wait();
      EXPECT_EQ(small.back(), 'y');
      EXPECT_LT(took(), 500ms) << "the large message is not through yet";
    }
    comm->barrier();
  });
}

}  // namespace
}  // namespace sailor
