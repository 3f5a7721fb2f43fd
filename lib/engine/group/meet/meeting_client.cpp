// SPDX-License-Identifier: Apache-2.0
#include "engine/group/meet/meeting_client.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <thread>

#include "core/error.h"
#include "core/format.h"
#include "core/system/stop_signal.h"
#include "engine/group/message.h"

namespace stoker::engine {
namespace {

using core::Error;
using core::ErrorKind;
using core::format;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kBetweenTries(100);

std::string place_of(const MeetingClient::Settings& settings) {
  return settings.host.find(':') == std::string::npos ? format("{}:{}", settings.host, settings.port)
                                                      : format("[{}]:{}", settings.host, settings.port);
}

void limit_waiting(int descriptor, double seconds) {
  const double whole = std::floor(seconds);
  const timeval limit{static_cast<time_t>(whole), static_cast<suseconds_t>((seconds - whole) * 1e6)};
  ::setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  ::setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));  // of connect() as well
}

/// No socket where nobody is there.
Socket connected(const std::string& host, int port, double answer_seconds) {
  const Addresses addresses = addresses_of(host, port, 0);
  for (const addrinfo* one = addresses.get(); one != nullptr; one = one->ai_next) {
    Socket socket(::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (socket.get() < 0) continue;
    limit_waiting(socket.get(), answer_seconds);
    if (::connect(socket.get(), one->ai_addr, one->ai_addrlen) != 0) continue;
    socket.set_option(IPPROTO_TCP, TCP_NODELAY);
    return socket;
  }
  return Socket();
}

Socket awaited(const MeetingClient::Settings& settings) {
  const Clock::time_point begin = Clock::now();
  for (;;) {
    Socket socket = connected(settings.host, settings.port, settings.answer_seconds);
    if (socket.get() >= 0) return socket;
    core::throw_if_stopped();
    if (Clock::now() - begin > std::chrono::duration<double>(settings.meeting_seconds)) break;
    std::this_thread::sleep_for(kBetweenTries);
  }
  throw Error(ErrorKind::peer_lost,
              format("rank {} found nobody at {}, where ranks are to meet, within {:g} s", settings.rank,
                     place_of(settings), settings.meeting_seconds),
              "look at the address and the port, and whether rank 0 is running");
}

std::string local_address(const Socket& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  char text[NI_MAXHOST] = {};
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size);
  ::getnameinfo(reinterpret_cast<sockaddr*>(&address), size, text, sizeof(text), nullptr, 0, NI_NUMERICHOST);
  return text;
}

MessageWriter asking(MeetingCall call) {
  MessageWriter message;
  message.add(static_cast<int64_t>(call));
  return message;
}

}  // namespace

MeetingClient::MeetingClient(const Settings& settings)
    : place_(place_of(settings)), socket_(awaited(settings)), own_address_(local_address(socket_)) {
  MessageWriter message = asking(MeetingCall::join);
  message.add(settings.run);
  message.add(int64_t{settings.rank});
  const std::string answer = answer_to(message.bytes());
  if (MessageReader(answer).flag()) return;
  throw Error(ErrorKind::config, format("the ranks of another run meet at {}", place_),
              "name another port in MASTER_PORT");
}

void MeetingClient::set(const std::string& key, const std::string& value) {
  MessageWriter message = asking(MeetingCall::set);
  message.add(key);
  message.add(value);
  answer_to(message.bytes());
}

std::optional<std::string> MeetingClient::find(const std::string& key) {
  MessageWriter message = asking(MeetingCall::find);
  message.add(key);
  const std::string answer = answer_to(message.bytes());
  MessageReader reader(answer);
  if (!reader.flag()) return std::nullopt;
  return reader.text();
}

std::string MeetingClient::compare_set(const std::string& key, const std::string& expected, const std::string& value) {
  MessageWriter message = asking(MeetingCall::compare_set);
  message.add(key);
  message.add(expected);
  message.add(value);
  const std::string answer = answer_to(message.bytes());
  return MessageReader(answer).text();
}

int64_t MeetingClient::add(const std::string& key, int64_t number) {
  MessageWriter message = asking(MeetingCall::add);
  message.add(key);
  message.add(number);
  const std::string answer = answer_to(message.bytes());
  return MessageReader(answer).number();
}

bool MeetingClient::erase(const std::string& key) {
  MessageWriter message = asking(MeetingCall::erase);
  message.add(key);
  const std::string answer = answer_to(message.bytes());
  return MessageReader(answer).flag();
}

int64_t MeetingClient::count() {
  const std::string answer = answer_to(asking(MeetingCall::count).bytes());
  return MessageReader(answer).number();
}

std::string MeetingClient::answer_to(const std::string& question) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto lost = [this](const std::string& cause) {
    is_broken_ = true;
    return Error(ErrorKind::peer_lost, format("{}, where the ranks meet, does not answer: {}", place_, cause));
  };
  if (is_broken_) throw lost("it did not before");
  const std::string bytes = framed(question);
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t count = ::send(socket_.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw lost(std::strerror(errno));
    sent += static_cast<size_t>(count);
  }
  for (;;) {
    bool is_foreign = false;
    if (std::optional<std::string> answer = take_message(received_, is_foreign)) return *answer;
    char part[16384];
    const ssize_t count = is_foreign ? 0 : ::recv(socket_.get(), part, sizeof(part), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw lost(std::strerror(errno));
    if (count == 0) throw lost("the connection was closed");
    received_.append(part, static_cast<size_t>(count));
  }
}

}  // namespace stoker::engine
