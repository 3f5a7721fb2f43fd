// SPDX-License-Identifier: Apache-2.0
#include "engine/group/c10d/join.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <future>
#include <optional>
#include <thread>

#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "engine/group/c10d/device_peers.h"
#include "engine/group/c10d/gloo_peers.h"

namespace stoker::engine {
namespace {

using core::Error;
using core::ErrorKind;
using core::format;
using std::chrono::milliseconds;

using MakeStore = std::function<c10::intrusive_ptr<c10d::Store>()>;

// That the rank with the store waits for the others to end; where one of them is lost, until they have seen it.
constexpr milliseconds kFarewell(4000), kShortFarewell(1000);
constexpr milliseconds kBetweenLooks(20);

class C10dGroup : public Group {
 public:
  C10dGroup(std::unique_ptr<Rendezvous> rendezvous, GlooPeers::Settings settings, const MakeStore& store)
      : rendezvous_(std::move(rendezvous)), peers_(std::move(settings), *rendezvous_, store) {}
  C10dGroup& operator=(C10dGroup&&) = delete;  // not copied, not moved

  int rank() const override { return peers_.rank(); }
  int size() const override { return peers_.size(); }
  void sum(const std::vector<at::Tensor>& tensors) override {
    if (!tensors.empty() && !tensors.front().device().is_cpu()) {
      return on_devices([&](DevicePeers& devices) { sum_over_peers(devices, tensors); });
    }
    const int64_t before = peers_.bytes_sent();
    sum_over_peers(checked(), tensors);
    bytes_sent_ += peers_.bytes_sent() - before;
  }
  void sum_in_any_order(const at::Tensor& tensor) override {
    if (!tensor.device().is_cpu()) return on_devices([&](DevicePeers& devices) { devices.all_reduce(tensor); });
    const int64_t before = peers_.bytes_sent();
    peers_.all_reduce(tensor);
    bytes_sent_ += peers_.bytes_sent() - before;
  }
  bool sums_on(const at::Device& device) override {
    if (requested_device_ != device) {
      sums_there_ = connect(device);
      requested_device_ = device;
    }
    return sums_there_;
  }
  int64_t bytes_sent() const override { return bytes_sent_; }
  std::string from_root(const std::string& bytes) override { return from_root_of_peers(checked(), bytes); }
  std::vector<std::string> gather(const std::string& bytes) override { return gather_from_peers(checked(), bytes); }
  bool abort(const std::string& why) noexcept override {
    try {
      const std::string cause = format("rank {} failed: {}", rank(), why);
      return peers_.publish_cause(cause) == cause;
    } catch (...) {
      return true;
    }
  }
  void set_long_work(bool is_long) noexcept override { peers_.set_long_work(is_long); }

 private:
  Peers& checked() {
    peers_.throw_if_broken();
    return peers_;
  }
  bool connect(const at::Device& device) {
    const std::vector<std::string> cards = gather(device.is_cpu() ? kCpuCard : card_of(device));
    devices_.reset();
    if (std::count(cards.begin(), cards.end(), kCpuCard) == size()) return true;
    const std::string obstacle = link_obstacle(cards);
    if (!obstacle.empty() && rank() == 0) {
      core::log_warning("what GPUs have computed is added in the memory of the host, which takes longer: {}", obstacle);
    }
    if (obstacle.empty()) devices_ = connect_devices(peers_, device);
    return obstacle.empty();
  }
  /// Queues `work` and waits until the device has done it.
  template <typename Work>
  void on_devices(const Work& work) {
    if (!devices_)
      throw Error(ErrorKind::bug, "tensors of a device are to be added, and sums_on() did not return true");
    const int64_t before = devices_->bytes_sent();
    work(*devices_);
    devices_->wait();
    bytes_sent_ += devices_->bytes_sent() - before;
  }
  const std::unique_ptr<Rendezvous> rendezvous_;
  GlooPeers peers_;
  std::unique_ptr<DevicePeers> devices_;        ///< null: sums of the CPU alone
  std::optional<at::Device> requested_device_;  ///< the device of the last sums_on()
  bool sums_there_ = false;
  std::atomic<int64_t> bytes_sent_{0};
};

/// Ranks of several machines meet in c10d's TCPStore.
class StoreMeeting : public Rendezvous {
 public:
  /// `serves`: it goes with this rank, which waits for the others to end.
  StoreMeeting(c10::intrusive_ptr<c10d::Store> store, const Joining& joining, bool serves)
      : store_(std::move(store)),
        rank_(joining.rank),
        size_(joining.size),
        serves_(serves),
        where_(format("{}:{}", joining.host, joining.port)),
        whose_(joining.listen.empty() ? "what started the ranks" : "rank 0"),
        patience_(static_cast<int64_t>(500 * joining.timeout_seconds)) {
    if (add_one(format("here/{}", rank_)) > 1) throw duplicate_rank_error(rank_, size_, heartbeat_of(rank_).process);
    send_heartbeat({1, Heartbeat::Doing::long_work, ::getpid()});
  }
  ~StoreMeeting() override {
    const auto all_have_ended = [this] {
      bool is_so = true;
      for (int rank = 0; rank < size_; ++rank) is_so &= rank == rank_ || heartbeat_of(rank).has_ended();
      return is_so;
    };
    try {
      const milliseconds longest = !serves_ ? milliseconds(0) : cause().empty() ? kFarewell : kShortFarewell;
      for (milliseconds waited(0); waited < longest && !all_have_ended(); waited += kBetweenLooks) {
        std::this_thread::sleep_for(kBetweenLooks);
      }
    } catch (const Error&) {  // no rank could see it any more
    }
  }
  StoreMeeting& operator=(StoreMeeting&&) = delete;  // not copied, not moved

  void send_heartbeat(const Heartbeat& heartbeat) override { set(heartbeat_key(rank_), heartbeat.text()); }
  Heartbeat heartbeat_of(int rank) override { return Heartbeat::read(find(heartbeat_key(rank))); }
  std::string cause() override { return find("cause"); }
  std::string publish_cause(const std::string& cause) override {
    if (add_one("causes") == 1) set("cause", cause);  // compareSet() of some releases sets no new key
    const std::string there = find("cause");
    return there.empty() ? cause : there;
  }
  std::string failure() override {
    return is_broken_ ? format("{}, where the ranks meet, does not answer: {} is gone, or cut off", where_, whose_)
                      : "";
  }

 private:
  static std::string heartbeat_key(int rank) { return format("heartbeat/{}", rank); }

  void set(const std::string& key, const std::string& value) {
    query([key, value](c10d::Store& store) {
      store.set(key, std::vector<uint8_t>(value.begin(), value.end()));
      return "";
    });
  }
  int add_one(const std::string& key) {
    return std::stoi(query([key](c10d::Store& store) { return std::to_string(store.add(key, 1)); }));
  }
  std::string find(const std::string& key) {
    return query([key](c10d::Store& store) {
      if (!store.check({key})) return std::string();
      const std::vector<uint8_t> bytes = store.get(key);
      return std::string(bytes.begin(), bytes.end());
    });
  }
  /// A TCPStore waits for an answer for ever; a query does not, and is the last one after a timeout.
  std::string query(const std::function<std::string(c10d::Store&)>& question) {
    if (is_broken_) throw Error(ErrorKind::peer_lost, failure());
    std::packaged_task<std::string()> task([store = store_, question] { return question(*store); });
    std::future<std::string> answer = task.get_future();
    std::thread(std::move(task)).detach();
    try {
      if (answer.wait_for(patience_) == std::future_status::ready) return answer.get();
      core::log_debug("{}: no answer for {} ms", where_, patience_.count());
    } catch (const std::exception& error) {
      core::log_debug("{}: {}", where_, error.what());
    }
    is_broken_ = true;
    throw Error(ErrorKind::peer_lost, failure());
  }

  const c10::intrusive_ptr<c10d::Store> store_;
  const int rank_, size_;
  const bool serves_;
  const std::string where_, whose_;
  const milliseconds patience_;
  std::atomic<bool> is_broken_{false};
};

/// Calls `work` with a socket for each address of `host`, until it returns true; whether it did. Closes the socket
/// unless `is_kept`.
bool with_sockets(const std::string& host, int port, bool is_kept,
                  const std::function<bool(int, const addrinfo&)>& work) {
  addrinfo wanted{}, *first = nullptr;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &first) != 0) return false;
  bool is_done = false;
  for (const addrinfo* one = first; one != nullptr && !is_done; one = one->ai_next) {
    const int socket = ::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    is_done = socket >= 0 && work(socket, *one);
    if (socket >= 0 && !(is_done && is_kept)) ::close(socket);
  }
  ::freeaddrinfo(first);
  return is_done;
}

/// The address of this machine on the way to where ranks meet, as an IP address; waits until somebody is there.
std::string own_address(const Joining& joining) {
  std::string address;
  const auto is_there = [&](int socket, const addrinfo& place) {
    const timeval limit{5, 0};
    ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));  // of connect()
    sockaddr_storage own{};
    socklen_t size = sizeof(own);
    char text[NI_MAXHOST] = {};
    if (::connect(socket, place.ai_addr, place.ai_addrlen) != 0) return false;
    ::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &size);
    ::getnameinfo(reinterpret_cast<sockaddr*>(&own), size, text, sizeof(text), nullptr, 0, NI_NUMERICHOST);
    address = text;
    return true;
  };
  wait_until_present(
      [&] {
        const bool is_done = with_sockets(joining.host, joining.port, false, is_there);
        return is_done ? "" : format("rank 0 of {} at {}:{}", joining.size, joining.host, joining.port);
      },
      joining.meeting_seconds, "look at MASTER_ADDR and MASTER_PORT, and whether rank 0 is running");
  if ((address.rfind("127.", 0) != 0 && address != "::1") || address == joining.host) return address;
  throw Error(ErrorKind::config,
              format("rank {} reaches {} over {}, an address that other machines cannot reach", joining.rank,
                     joining.host, address),
              "name an IP address of the network in MASTER_ADDR and with --listen");
}

/// The store of rank 0 itself.
c10::intrusive_ptr<c10d::TCPStore> served_store(const Joining& joining, milliseconds timeout) {
  int bound = -1;
  std::string cause = "no address has this name";
  const auto is_bound = [&](int socket, const addrinfo& place) {
    const int one = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    bound = socket;
    const bool is_done = ::bind(socket, place.ai_addr, place.ai_addrlen) == 0;
    if (!is_done) cause = std::strerror(errno);
    return is_done;
  };
  const bool is_any = joining.listen == "0.0.0.0" || joining.listen == "::";
  try {
    if (!can_listen_at_one_address() || with_sockets(joining.listen, joining.port, true, is_bound)) {
      const std::string& host = is_any ? joining.host : joining.listen;
      return compat::make_store<c10d::TCPStoreOptions>(host, joining.port, true, timeout, bound);
    }
  } catch (const std::exception& error) {
    cause = error.what();
  }
  throw Error(ErrorKind::os,
              format("cannot listen at {}:{}, where ranks are to meet: {}", joining.listen, joining.port,
                     cause.substr(0, cause.find('\n'))),
              "name a free port in MASTER_PORT, and an address of this machine with --listen");
}

}  // namespace

bool can_join_processes() { return true; }
bool can_listen_at_one_address() { return compat::TakesSocket<c10d::TCPStoreOptions>::value; }

std::unique_ptr<Group> join_processes(const Joining& joining) {
  GlooPeers::Settings settings;
  settings.rank = joining.rank;
  settings.size = joining.size;
  settings.meeting_seconds = joining.meeting_seconds;
  settings.timeout_seconds = joining.timeout_seconds;
  settings.when_overdue = joining.when_overdue;
  if (joining.is_one_machine) {
    settings.address = "127.0.0.1";
    auto folder = std::make_unique<RendezvousFolder>(joining.job, joining.rank, joining.size, joining.meeting_seconds);
    const std::string path = folder->path() + "/store";
    return std::make_unique<C10dGroup>(std::move(folder), std::move(settings),
                                       [path] { return c10::make_intrusive<c10d::FileStore>(path, -1); });
  }
  const milliseconds timeout(static_cast<int64_t>(1000 * joining.meeting_seconds));
  const bool serves = joining.rank == 0 && !joining.listen.empty();
  c10::intrusive_ptr<c10d::TCPStore> store;
  if (serves) store = served_store(joining, timeout);
  settings.address = own_address(joining);
  const auto visit = [=] {
    return compat::make_store<c10d::TCPStoreOptions>(joining.host, joining.port, false, timeout);
  };
  if (!store) store = visit();
  if (!joining.listen.empty()) {
    const std::vector<uint8_t> job(joining.job.begin(), joining.job.end());
    if (serves) store->set("job", job);
    if (store->get("job") != job) {
      throw Error(ErrorKind::config, format("the ranks of another run meet at {}:{}", joining.host, joining.port),
                  "name another port in MASTER_PORT");
    }
  }
  const auto of_job = [=](c10::intrusive_ptr<c10d::Store> all) -> c10::intrusive_ptr<c10d::Store> {
    return c10::make_intrusive<c10d::PrefixStore>("stoker/" + joining.job, std::move(all));
  };
  auto rendezvous = std::make_unique<StoreMeeting>(of_job(store), joining, serves);
  // A separate store: a wait for an address in a store blocks all others of its process.
  return std::make_unique<C10dGroup>(std::move(rendezvous), std::move(settings), [=] { return of_job(visit()); });
}

}  // namespace stoker::engine
