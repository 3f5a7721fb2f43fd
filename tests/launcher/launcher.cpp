// SPDX-License-Identifier: Apache-2.0
#include "launcher.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

namespace stoker::launcher {
namespace {

constexpr size_t kMaxBytes = 1 << 17;  // of a request

bool address_of(const std::string& path, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) return false;
  std::memcpy(address.sun_path, path.c_str(), path.size());
  return true;
}

/// Directory, number of words, words, environment; each text ends with a zero.
std::string text_of(const LaunchRequest& request) {
  std::string text = request.directory + '\0' + std::to_string(request.words.size()) + '\0';
  for (const std::string& word : request.words) text += word + '\0';
  for (const std::string& variable : request.environment) text += variable + '\0';
  return text;
}

LaunchRequest request_of(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\0', begin);
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  LaunchRequest request;
  request.directory = parts.at(0);
  const auto first_variable = parts.begin() + 2 + std::stol(parts.at(1));
  request.words.assign(parts.begin() + 2, first_variable);
  request.environment.assign(first_variable, parts.end());
  return request;
}

/// A text of a request and the program's two outputs beside it, as the socket carries them.
struct Message {
  Message(char* text, size_t bytes) : part{text, bytes} {
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
  }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  static constexpr size_t kFilesBytes = 2 * sizeof(int);
  iovec part;
  alignas(cmsghdr) char control[CMSG_SPACE(kFilesBytes)] = {};
  msghdr header = {};
};

}  // namespace

int connect_to_launcher(const std::string& path) {
  sockaddr_un address;
  if (!address_of(path, address)) return -1;
  const int connection = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (connection < 0) return -1;
  if (::connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return connection;
  ::close(connection);
  return -1;
}

pid_t launch_over(int connection, const LaunchRequest& request, int out, int err) {
  std::string text = text_of(request);
  if (text.size() > kMaxBytes) return -1;
  const int files[2] = {out, err};
  Message message(text.data(), text.size());
  cmsghdr* const header = CMSG_FIRSTHDR(&message.header);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(Message::kFilesBytes);
  std::memcpy(CMSG_DATA(header), files, sizeof files);
  pid_t pid = -1;
  if (::sendmsg(connection, &message.header, MSG_NOSIGNAL) != static_cast<ssize_t>(text.size())) return -1;
  return ::recv(connection, &pid, sizeof pid, 0) == sizeof pid ? pid : -1;
}

bool receive_request(int connection, LaunchRequest& request, int& out, int& err) {
  std::string text(kMaxBytes, '\0');
  int files[2] = {-1, -1};
  Message message(text.data(), text.size());
  const ssize_t got = ::recvmsg(connection, &message.header, 0);
  const cmsghdr* const header = got > 0 ? CMSG_FIRSTHDR(&message.header) : nullptr;
  if (header == nullptr || header->cmsg_len != CMSG_LEN(Message::kFilesBytes)) return false;
  std::memcpy(files, CMSG_DATA(header), sizeof files);
  text.resize(static_cast<size_t>(got));
  request = request_of(text);
  out = files[0];
  err = files[1];
  return true;
}

void end_launcher(const std::string& path) {
  const int connection = connect_to_launcher(path);
  if (connection < 0) return;
  ::send(connection, "end", 3, MSG_NOSIGNAL);
  char nothing = 0;
  ::recv(connection, &nothing, 1, 0);  // until it is gone
  ::close(connection);
}

}  // namespace stoker::launcher
