// SPDX-License-Identifier: Apache-2.0
// The meeting point of ranks: names and values for all, on one address, and who is gone.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <thread>

#include "core/error.h"
#include "engine/group/meet/meeting_client.h"
#include "engine/group/meet/meeting_server.h"

namespace stoker::engine {
namespace {

MeetingServer::Settings here(bool names_lost_ranks = false) {
  MeetingServer::Settings settings;
  settings.run = "run";
  settings.names_lost_ranks = names_lost_ranks;
  return settings;
}

MeetingClient::Settings visit(const MeetingServer& server, int rank, const std::string& run = "run") {
  MeetingClient::Settings settings;
  settings.host = "127.0.0.1";
  settings.port = server.port();
  settings.run = run;
  settings.rank = rank;
  settings.meeting_seconds = 0;
  settings.answer_seconds = 5;
  return settings;
}

template <typename IsTrue>
bool becomes_true(const IsTrue& is_true) {
  for (int tries = 0; tries < 1000 && !is_true(); ++tries) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return is_true();
}

int code_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const core::Error& error) {
    return core::exit_code(error.kind());
  }
  return 0;
}

TEST(MeetingTest, AllSeeTheSameValues) {
  const MeetingServer server(here());
  MeetingClient one(visit(server, 0)), other(visit(server, 1));
  EXPECT_FALSE(one.find("key"));
  one.set("key", std::string(200'000, 'x'));
  EXPECT_EQ(other.find("key"), std::string(200'000, 'x'));
  EXPECT_EQ(one.compare_set("once", "", "first"), "first");
  EXPECT_EQ(other.compare_set("once", "", "second"), "first");
  EXPECT_EQ(other.compare_set("once", "first", "second"), "second");
  EXPECT_EQ(one.add("count", 2), 2);
  EXPECT_EQ(other.add("count", 5), 7);
  EXPECT_EQ(one.count(), 3);
  EXPECT_TRUE(one.erase("key"));
  EXPECT_FALSE(other.erase("key"));
  EXPECT_EQ(server.find("once"), "second");
  EXPECT_EQ(one.own_address(), "127.0.0.1");
}

TEST(MeetingTest, ListensAtItsAddressAlone) {
  const MeetingServer server(here());
  MeetingClient::Settings elsewhere = visit(server, 0);
  elsewhere.host = "127.0.0.2";  // as much this machine as the other, but not where it listens
  EXPECT_EQ(code_of([&] { MeetingClient client(elsewhere); }), 76);
}

TEST(MeetingTest, RanksOfAnotherRunAreTurnedAway) {
  const MeetingServer server(here());
  EXPECT_EQ(code_of([&] { MeetingClient client(visit(server, 0, "another run")); }), 78);
}

TEST(MeetingTest, ARankThatIsGoneWithoutAWordBecomesTheCause) {
  MeetingServer server(here(/*names_lost_ranks=*/true));
  MeetingClient stays(visit(server, 0));
  auto ends = std::make_unique<MeetingClient>(visit(server, 1)),
       dies = std::make_unique<MeetingClient>(visit(server, 2));
  EXPECT_EQ(server.ranks_here(), 3);
  ends->set(ended_key(1), "1");
  ends.reset();
  EXPECT_TRUE(becomes_true([&] { return server.ranks_here() == 2; }));
  EXPECT_FALSE(server.find(kCauseKey));
  dies.reset();
  EXPECT_TRUE(becomes_true([&] { return server.find(kCauseKey).has_value(); }));
  EXPECT_EQ(stays.find(kCauseKey), "rank 2 is gone");
}

TEST(MeetingTest, StrangersDisturbNobody) {
  MeetingServer server(here(/*names_lost_ranks=*/true));
  MeetingClient rank(visit(server, 0));
  for (const std::string& bytes : {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(64, '\xff'), std::string(3, '\0'),
                                   framed("half"), framed(std::string(8, '\1'))}) {
    const Socket socket(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(server.port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::write(socket.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    rank.set("key", "value");
    EXPECT_EQ(rank.find("key"), "value");
  }
  EXPECT_FALSE(server.find(kCauseKey));
}

TEST(MeetingTest, ALostMeetingPointIsAnErrorFromThenOn) {
  auto server = std::make_unique<MeetingServer>(here());
  MeetingClient rank(visit(*server, 0));
  server.reset();
  EXPECT_EQ(code_of([&] { rank.set("key", "value"); }), 76);
  EXPECT_EQ(code_of([&] { rank.find("key"); }), 76);
}

TEST(MeetingTest, WhoComesFirstWaits) {
  auto first = std::make_unique<MeetingServer>(here());
  MeetingClient::Settings settings = visit(*first, 0);
  settings.meeting_seconds = 60;
  MeetingServer::Settings same_port = here();
  same_port.port = first->port();
  first.reset();
  std::unique_ptr<MeetingServer> late;
  std::thread opens([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    late = std::make_unique<MeetingServer>(same_port);
  });
  MeetingClient client(settings);
  opens.join();
  client.set("key", "value");
  EXPECT_EQ(late->find("key"), "value");
}

}  // namespace
}  // namespace stoker::engine
