// SPDX-License-Identifier: Apache-2.0
#include "engine/group/meet/meeting_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <list>

#include "core/error.h"
#include "core/format.h"
#include "engine/group/message.h"

namespace stoker::engine {
namespace {

constexpr int kMaxWaiting = 1024;

[[noreturn]] void cannot_listen(const MeetingServer::Settings& settings, const std::string& cause) {
  throw core::Error(
      core::ErrorKind::os,
      core::format("cannot listen at {}:{}, where ranks are to meet: {}", settings.address, settings.port, cause),
      settings.port == 0 ? "" : "name a free port in MASTER_PORT, and an address of this machine with --listen");
}

Socket listening_socket(const MeetingServer::Settings& settings) {
  const Addresses addresses = addresses_of(settings.address, settings.port, AI_PASSIVE);
  if (!addresses) cannot_listen(settings, "no address has this name");
  Socket socket(::socket(addresses->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (socket.get() < 0) cannot_listen(settings, std::strerror(errno));
  socket.set_option(SOL_SOCKET, SO_REUSEADDR);
  if (::bind(socket.get(), addresses->ai_addr, addresses->ai_addrlen) != 0 ||
      ::listen(socket.get(), kMaxWaiting) != 0) {
    cannot_listen(settings, std::strerror(errno));
  }
  return socket;
}

int port_of(const Socket& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                             : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

}  // namespace

Socket::~Socket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::string ended_key(int rank) { return core::format("ended/{}", rank); }

struct MeetingServer::Visitor {
  explicit Visitor(int descriptor) : socket(descriptor) {}
  Socket socket;
  std::string in, out;
  int rank = -1;  ///< once it has joined
  bool is_gone = false;
};

MeetingServer::MeetingServer(Settings settings)
    : settings_(std::move(settings)), listening_(listening_socket(settings_)), wake_(::eventfd(0, EFD_CLOEXEC)) {
  if (wake_.get() < 0) cannot_listen(settings_, std::strerror(errno));
  port_ = port_of(listening_);
  thread_ = std::thread([this] { serve(); });
}

MeetingServer::~MeetingServer() {
  ::eventfd_write(wake_.get(), 1);
  thread_.join();
}

std::optional<std::string> MeetingServer::find(const std::string& key) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = values_.find(key);
  if (found == values_.end()) return std::nullopt;
  return found->second;
}

std::string MeetingServer::set_once(const std::string& key, const std::string& value) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return compare_set(key, "", value);
}

std::string MeetingServer::compare_set(const std::string& key, const std::string& expected, const std::string& value) {
  const auto found = values_.find(key);
  if (found == values_.end()) return expected.empty() ? values_[key] = value : expected;
  if (found->second == expected) found->second = value;
  return found->second;
}

void MeetingServer::serve() {
  std::list<Visitor> visitors;
  for (;;) {
    std::vector<pollfd> polled = {{wake_.get(), POLLIN, 0}, {listening_.get(), POLLIN, 0}};
    for (const Visitor& visitor : visitors) {
      polled.push_back(
          {visitor.socket.get(), static_cast<int16_t>(visitor.out.empty() ? POLLIN : POLLIN | POLLOUT), 0});
    }
    ::poll(polled.data(), polled.size(), -1);
    if (polled[0].revents != 0) return;
    size_t at = 2;
    for (Visitor& visitor : visitors) {
      if (polled[at++].revents != 0) serve_visitor(visitor);
    }
    for (const Visitor& visitor : visitors) {
      if (visitor.is_gone) say_good_bye(visitor);
    }
    visitors.remove_if([](const Visitor& visitor) { return visitor.is_gone; });
    if (polled[1].revents == 0) continue;
    const int descriptor = ::accept4(listening_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor < 0) continue;
    visitors.emplace_back(descriptor);
    visitors.back().socket.set_option(IPPROTO_TCP, TCP_NODELAY);
  }
}

void MeetingServer::serve_visitor(Visitor& visitor) {
  char bytes[16384];
  for (;;) {
    const ssize_t count = ::recv(visitor.socket.get(), bytes, sizeof(bytes), 0);
    if (count > 0) visitor.in.append(bytes, static_cast<size_t>(count));
    if (count > 0 || (count < 0 && errno == EINTR)) continue;
    visitor.is_gone = count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
    break;
  }
  bool is_foreign = false;
  try {
    while (const std::optional<std::string> question = take_message(visitor.in, is_foreign)) {
      visitor.out += framed(answer_to(visitor, *question));
    }
  } catch (const core::Error&) {
    is_foreign = true;
  }
  visitor.is_gone |= is_foreign;
  while (!visitor.is_gone && !visitor.out.empty()) {
    const ssize_t count = ::send(visitor.socket.get(), visitor.out.data(), visitor.out.size(), MSG_NOSIGNAL);
    if (count > 0) visitor.out.erase(0, static_cast<size_t>(count));
    if (count > 0 || (count < 0 && errno == EINTR)) continue;
    visitor.is_gone = errno != EAGAIN && errno != EWOULDBLOCK;
    break;
  }
}

/// Throws core::Error{bug} for what is no question, or one of somebody who has not joined.
std::string MeetingServer::answer_to(Visitor& visitor, const std::string& question) {
  MessageReader reader(question);
  MessageWriter answer;
  const auto call = static_cast<MeetingCall>(reader.number());
  const std::lock_guard<std::mutex> lock(mutex_);
  if (call == MeetingCall::join) {
    const bool is_welcome = reader.text() == settings_.run;
    if (is_welcome && visitor.rank < 0) {
      visitor.rank = static_cast<int>(reader.number());
      ++ranks_here_;
    }
    answer.add(is_welcome);
    return answer.bytes();
  }
  if (visitor.rank < 0) throw core::Error(core::ErrorKind::bug, "a question before joining");
  const std::string key = call == MeetingCall::count ? "" : reader.text();
  switch (call) {
    case MeetingCall::set: values_[key] = reader.text(); break;
    case MeetingCall::find: {
      const auto found = values_.find(key);
      answer.add(found != values_.end());
      answer.add(found != values_.end() ? found->second : std::string());
      break;
    }
    case MeetingCall::compare_set: {
      const std::string expected = reader.text();
      answer.add(compare_set(key, expected, reader.text()));
      break;
    }
    case MeetingCall::add: {
      std::string& value = values_[key];
      value = std::to_string(std::atoll(value.c_str()) + reader.number());
      answer.add(int64_t{std::atoll(value.c_str())});
      break;
    }
    case MeetingCall::erase: answer.add(values_.erase(key) > 0); break;
    case MeetingCall::count: answer.add(static_cast<int64_t>(values_.size())); break;
    default: throw core::Error(core::ErrorKind::bug, "no such question");
  }
  return answer.bytes();
}

void MeetingServer::say_good_bye(const Visitor& visitor) {
  if (visitor.rank < 0) return;
  --ranks_here_;
  if (!settings_.names_lost_ranks) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (values_.count(ended_key(visitor.rank)) == 0) {
    compare_set(kCauseKey, "", core::format("rank {} is gone", visitor.rank));
  }
}

}  // namespace stoker::engine
