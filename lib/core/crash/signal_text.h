// SPDX-License-Identifier: Apache-2.0
// Text for signal handlers: put together in memory that is there already, written by system calls.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace stoker::core {

/// write(2) of all bytes; false where that fails.
inline bool write_all(int fd, const char* bytes, size_t count) {
  while (count > 0) {
    const ssize_t n = ::write(fd, bytes, count);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes += n;
    count -= static_cast<size_t>(n);
  }
  return true;
}

/// Up to `Capacity` bytes; what does not fit is cut off.
template <size_t Capacity>
class SignalText {
 public:
  SignalText& add(const char* text) {
    while (*text != '\0') add(*text++);
    return *this;
  }
  SignalText& add(char byte) {
    if (size_ < Capacity) bytes_[size_++] = byte;
    bytes_[size_] = '\0';
    return *this;
  }
  /// In decimal, with zeros in front up to `digits`.
  SignalText& add(uint64_t number, int digits = 1) {
    char reversed[20];
    int count = 0;
    for (; number > 0 || count < digits; number /= 10) reversed[count++] = static_cast<char>('0' + number % 10);
    while (count > 0) add(reversed[--count]);
    return *this;
  }
  /// Seconds since 1970 as "2024-12-31T23:59:59Z", with milliseconds where they are given as "...:59.123Z": gmtime() is
  /// not for signal handlers.
  SignalText& add_utc(uint64_t unix_seconds, std::optional<uint64_t> milliseconds = std::nullopt) {
    constexpr uint64_t kDay = 86'400, kDaysOf400Years = 146'097, kMarch0To1970 = 719'468;
    const uint64_t days = unix_seconds / kDay + kMarch0To1970, second = unix_seconds % kDay;
    const uint64_t cycle = days / kDaysOf400Years, of_cycle = days % kDaysOf400Years;
    // Years that begin in March: the day of a leap year is their last.
    const uint64_t year = (of_cycle - of_cycle / 1460 + of_cycle / 36'524 - of_cycle / 146'096) / 365;
    const uint64_t of_year = of_cycle - (365 * year + year / 4 - year / 100), from_march = (5 * of_year + 2) / 153;
    const uint64_t day = of_year - (153 * from_march + 2) / 5 + 1,
                   month = from_march < 10 ? from_march + 3 : from_march - 9;
    add(400 * cycle + year + (month <= 2 ? 1 : 0), 4).add('-').add(month, 2).add('-').add(day, 2);
    add('T').add(second / 3600, 2).add(':').add(second / 60 % 60, 2).add(':').add(second % 60, 2);
    if (milliseconds) add('.').add(*milliseconds, 3);
    return add('Z');
  }
  /// Bytes of a name, those but visible ASCII as \xNN.
  SignalText& add_printable(const char* text) {
    constexpr const char* kDigits = "0123456789abcdef";
    for (; *text != '\0'; ++text) {
      const auto byte = static_cast<unsigned char>(*text);
      if (byte > ' ' && byte < 0x7f) {
        add(*text);
      } else {
        add("\\x").add(kDigits[byte >> 4]).add(kDigits[byte & 15]);
      }
    }
    return *this;
  }

  const char* text() const { return bytes_; }
  size_t size() const { return size_; }
  bool write_to(int fd) const { return write_all(fd, bytes_, size_); }

 private:
  char bytes_[Capacity + 1] = {};
  size_t size_ = 0;
};

}  // namespace stoker::core
