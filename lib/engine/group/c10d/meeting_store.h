// SPDX-License-Identifier: Apache-2.0
// A meeting point as c10d wants to see it: what Gloo exchanges its addresses through.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/group/meet/meeting_client.h"

namespace stoker::engine {

class MeetingStore : public c10d::Store {
 public:
  explicit MeetingStore(std::shared_ptr<MeetingClient> client) : client_(std::move(client)) {}

  void set(const std::string& key, const std::vector<uint8_t>& value) override { client_->set(key, text_of(value)); }
  std::vector<uint8_t> compareSet(const std::string& key, const std::vector<uint8_t>& expected,
                                  const std::vector<uint8_t>& value) override {
    return bytes_of(client_->compare_set(key, text_of(expected), text_of(value)));
  }
  std::vector<uint8_t> get(const std::string& key) override {
    wait({key}, timeout_);
    return bytes_of(client_->find(key).value_or(""));
  }
  int64_t add(const std::string& key, int64_t value) override { return client_->add(key, value); }
  bool deleteKey(const std::string& key) override { return client_->erase(key); }
  bool check(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) {
      if (!client_->find(key)) return false;
    }
    return true;
  }
  int64_t getNumKeys() override { return client_->count(); }
  void wait(const std::vector<std::string>& keys) override { wait(keys, timeout_); }
  /// Asks again and again: few keys, and only while ranks start.
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) override {
    const auto begin = std::chrono::steady_clock::now();
    while (!check(keys)) {
      TORCH_CHECK(std::chrono::steady_clock::now() - begin < timeout, "timed out waiting for ", keys.front());
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
  c10::intrusive_ptr<c10d::Store> clone() { return c10::make_intrusive<MeetingStore>(client_); }  // of later releases

 private:
  static std::string text_of(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }
  static std::vector<uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

  const std::shared_ptr<MeetingClient> client_;
};

}  // namespace stoker::engine
