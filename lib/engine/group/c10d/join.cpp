// SPDX-License-Identifier: Apache-2.0
#include "engine/group/c10d/join.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "engine/group/c10d/device_peers.h"
#include "engine/group/c10d/gloo_peers.h"
#include "engine/group/meet/meeting_server.h"

namespace stoker::engine {
namespace {

using core::Error;
using core::ErrorKind;
using core::format;
using std::chrono::milliseconds;

constexpr milliseconds kFarewell(4000);  // that the rank with the meeting point waits for the others to end
constexpr milliseconds kBetweenLooks(20);

class C10dGroup : public Group {
 public:
  C10dGroup(std::unique_ptr<MeetingServer> server, GlooPeers::Settings settings, std::shared_ptr<MeetingClient> meeting)
      : server_(std::move(server)), peers_(std::move(settings), std::move(meeting)) {}
  ~C10dGroup() override {
    peers_.say_that_it_ended();
    if (server_) wait_for_others_to_end();
  }
  C10dGroup(const C10dGroup&) = delete;
  C10dGroup& operator=(const C10dGroup&) = delete;

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
    if (asked_for_ != device) {
      sums_there_ = connect(device);
      asked_for_ = device;
    }
    return sums_there_;
  }
  int64_t bytes_sent() const override { return bytes_sent_; }
  std::string from_root(const std::string& bytes) override { return from_root_of_peers(checked(), bytes); }
  std::vector<std::string> gather(const std::string& bytes) override { return gather_from_peers(checked(), bytes); }
  bool abort(const std::string& why) noexcept override {
    try {
      const std::string cause = format("rank {} failed: {}", rank(), why);
      return peers_.say(cause) == cause;
    } catch (...) {
      return true;
    }
  }
  void does_long_work(bool is_long) noexcept override { peers_.does_long_work(is_long); }

 private:
  Peers& checked() {
    peers_.throw_if_broken();
    return peers_;
  }
  bool connect(const at::Device& device) {
    const std::vector<std::string> cards = gather(device.is_cpu() ? kCpuCard : card_of(device));
    devices_.reset();
    if (std::count(cards.begin(), cards.end(), kCpuCard) == size()) return true;
    const std::string trouble = why_not_between(cards);
    if (!trouble.empty() && rank() == 0) {
      core::log_warning("what GPUs have computed is added in the memory of the host, which takes longer: {}", trouble);
    }
    if (trouble.empty()) devices_ = connect_devices(peers_, device);
    return trouble.empty();
  }
  /// Queues `work` and waits until the device has done it.
  template <typename Work>
  void on_devices(const Work& work) {
    if (!devices_) throw Error(ErrorKind::bug, "tensors of a device are to be added, and sums_on() did not say yes");
    const int64_t before = devices_->bytes_sent();
    work(*devices_);
    devices_->wait();
    bytes_sent_ += devices_->bytes_sent() - before;
  }
  /// They look at the meeting point until then.
  void wait_for_others_to_end() {
    for (milliseconds waited(0); waited < kFarewell && server_->ranks_here() > 1; waited += kBetweenLooks) {
      std::this_thread::sleep_for(kBetweenLooks);
    }
  }

  const std::unique_ptr<MeetingServer> server_;  ///< on the rank that hosts the meeting point
  GlooPeers peers_;
  std::unique_ptr<DevicePeers> devices_;  ///< null: sums of the CPU alone
  std::optional<at::Device> asked_for_;   ///< the device of the last sums_on()
  bool sums_there_ = false;
  std::atomic<int64_t> bytes_sent_{0};
};

class HeldMeetingPoint : public MeetingPoint {
 public:
  explicit HeldMeetingPoint(const std::string& run) : server_(settings_of(run)) {}
  int port() const override { return server_.port(); }
  std::string cause() const override { return server_.find(kCauseKey).value_or(""); }
  void say(const std::string& cause) override { server_.set_once(kCauseKey, cause); }

 private:
  static MeetingServer::Settings settings_of(const std::string& run) {
    MeetingServer::Settings settings;
    settings.run = run;
    return settings;
  }
  MeetingServer server_;
};

bool is_loopback(const std::string& address) { return address.rfind("127.", 0) == 0 || address == "::1"; }

/// Through the store of a starter, which listens wherever it likes: rank 0 says there where its meeting point is.
class StarterStore {
 public:
  explicit StarterStore(const Joining& joining) : key_("stoker/" + joining.run + "/meet") {
    try {
      store_ = compat::make_store(joining.host, joining.port, /*is_server=*/false,
                                  milliseconds(static_cast<int64_t>(1000 * joining.meeting_seconds)));
    } catch (const std::exception&) {
      throw Error(
          ErrorKind::peer_lost,
          format("rank {} cannot reach the store of its starter at {}:{}", joining.rank, joining.host, joining.port),
          "look at MASTER_ADDR and MASTER_PORT, and whether the starter is running");
    }
  }
  void set(const std::string& host, int port) {
    const std::string text = format("{} {}", port, host);
    store_->set(key_, {text.begin(), text.end()});
  }
  /// Throws Error{peer_lost}.
  void get(std::string& host, int& port) {
    try {
      const std::vector<uint8_t> bytes = store_->get(key_);
      const std::string text(bytes.begin(), bytes.end());
      port = std::atoi(text.c_str());
      host = text.substr(text.find(' ') + 1);
    } catch (const std::exception&) {
      throw Error(ErrorKind::peer_lost, "rank 0 did not come to the meeting point in time");
    }
  }

 private:
  const std::string key_;
  c10::intrusive_ptr<c10d::TCPStore> store_;
};

}  // namespace

bool can_join_processes() { return true; }

std::unique_ptr<MeetingPoint> open_meeting_point(const std::string& run) {
  return std::make_unique<HeldMeetingPoint>(run);
}

std::unique_ptr<Group> join_processes(const Joining& joining) {
  std::unique_ptr<MeetingServer> server;
  MeetingClient::Settings meeting;
  meeting.host = joining.host;
  meeting.port = joining.port;
  meeting.run = joining.run;
  meeting.rank = joining.rank;
  meeting.meeting_seconds = joining.meeting_seconds;
  meeting.answer_seconds = std::min(10.0, std::max(1.0, joining.timeout_seconds / 4));
  if (joining.hosts_meeting_point) {
    MeetingServer::Settings settings;
    settings.address = joining.listen;
    settings.port = joining.asks_starter ? 0 : joining.port;
    settings.run = joining.run;
    settings.names_lost_ranks = true;
    server = std::make_unique<MeetingServer>(settings);
    meeting.port = server->port();
    const bool is_any = joining.listen == "0.0.0.0" || joining.listen == "::";
    if (!is_any) meeting.host = joining.listen;
  }
  if (joining.asks_starter) {
    StarterStore store(joining);
    if (server)
      store.set(meeting.host, meeting.port);
    else
      store.get(meeting.host, meeting.port);
  }
  const auto client = std::make_shared<MeetingClient>(meeting);
  GlooPeers::Settings settings;
  settings.rank = joining.rank;
  settings.size = joining.size;
  settings.address = joining.is_one_machine ? "127.0.0.1" : client->own_address();
  settings.meeting_seconds = joining.meeting_seconds;
  settings.timeout_seconds = joining.timeout_seconds;
  settings.when_overdue = joining.when_overdue;
  if (!joining.is_one_machine && is_loopback(settings.address)) {
    throw Error(ErrorKind::config,
                format("rank {} reaches {} over {}, an address that other machines cannot reach", joining.rank,
                       meeting.host, settings.address),
                "name an address of the network, in figures, in MASTER_ADDR and with --listen");
  }
  return std::make_unique<C10dGroup>(std::move(server), std::move(settings), client);
}

}  // namespace stoker::engine
