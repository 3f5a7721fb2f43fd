// SPDX-License-Identifier: Apache-2.0
#include "config/table/parse_value.h"

#include <gtest/gtest.h>

#include <clocale>
#include <limits>

namespace stoker::config {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

std::string integer_problem(const std::string& text) {
  int64_t value = 0;
  return read_integer(text, 1, 100, value);
}

std::string number_problem(const std::string& text, const Bounds& bounds = {-kNoLimit, kNoLimit}) {
  double value = 0;
  return read_number(text, bounds, value);
}

TEST(ParseValueTest, ReadsWholeNumbersInDecimalDigitsOnly) {
  int64_t value = 0;
  EXPECT_EQ(read_integer("100", 1, 100, value), "");
  EXPECT_EQ(value, 100);
  EXPECT_EQ(read_integer("-7", -9, 9, value), "");
  EXPECT_EQ(value, -7);
  for (const char* text : {"1e1", "5.0", "0x10", "0o7", "1_0", "1 0", " 1", "1 ", "+1", "ten", "-", "1,0"}) {
    EXPECT_NE(integer_problem(text).find("is not a whole number in decimal digits; accepted: 1 to 100"),
              std::string::npos)
        << text << ": " << integer_problem(text);
  }
  EXPECT_EQ(integer_problem(""), "no value given; accepted: 1 to 100");
}

TEST(ParseValueTest, RefusesNumbersThatLookOctalAndShowsHowToWriteThem) {
  EXPECT_EQ(integer_problem("010"), "\"010\" begins with 0, which some readers take for octal; write 10");
  EXPECT_EQ(integer_problem("-007"), "\"-007\" begins with 0, which some readers take for octal; write -7");
  EXPECT_EQ(integer_problem("000"), "\"000\" begins with 0, which some readers take for octal; write 0");
  EXPECT_EQ(number_problem("00.5"), "\"00.5\" begins with 0, which some readers take for octal; write 0.5");
  EXPECT_EQ(number_problem("0.5"), "");
}

TEST(ParseValueTest, ReadsSizesWithAUnitAndWritesThemBack) {
  int64_t bytes = -1;
  for (const auto& [text, expected] :
       std::initializer_list<std::pair<const char*, int64_t>>{{"0", 0},
                                                              {"17B", 17},
                                                              {"500MB", 500'000'000},
                                                              {"16GB", 16'000'000'000},
                                                              {"16GiB", int64_t{16} << 30},
                                                              {"3KiB", 3072},
                                                              {"7kB", 7000},
                                                              {"2TB", 2'000'000'000'000}}) {
    EXPECT_EQ(read_size(text, bytes), "") << text;
    EXPECT_EQ(bytes, expected);
    EXPECT_EQ(size_text(bytes), text);
  }
  EXPECT_EQ(read_size("7KB", bytes), "");
  EXPECT_EQ(bytes, 7000);
  EXPECT_EQ(read_size("1.5GB", bytes), "");
  EXPECT_EQ(bytes, 1'500'000'000);
  EXPECT_EQ(size_text(bytes), "1500MB");
  EXPECT_EQ(read_size("16000000000", bytes), "\"16000000000\" has no unit; accepted: 500MB, 16GB, 16GiB, 1.5TB, or 0");
  for (const char* text : {"", "GB", "16 GB", "16gb", "16G", "-1GB", "0x1GB", "nanGB", "1GB ", "9e9TB"}) {
    EXPECT_NE(read_size(text, bytes), "") << text;
  }
  EXPECT_EQ(bytes, 1'500'000'000) << "unchanged by what is refused";
}

TEST(ParseValueTest, NamesTheRangeOfNumbersOutsideIt) {
  EXPECT_EQ(integer_problem("0"), "0 is out of range; accepted: 1 to 100");
  EXPECT_EQ(integer_problem("101"), "101 is out of range; accepted: 1 to 100");
  EXPECT_EQ(integer_problem("99999999999999999999"), "99999999999999999999 is out of range; accepted: 1 to 100");
  uint64_t seed = 0;
  EXPECT_EQ(read_unsigned("-1", seed), "-1 is out of range; accepted: 0 to 18446744073709551615");
  EXPECT_EQ(read_unsigned("18446744073709551615", seed), "");
  EXPECT_EQ(seed, 18446744073709551615u);
}

TEST(ParseValueTest, ReadsFiniteDecimalNumbersOnly) {
  double value = 0;
  EXPECT_EQ(read_number("1e-3", {0, 1}, value), "");
  EXPECT_EQ(value, 1e-3);
  EXPECT_EQ(read_number(".5", {0, 1}, value), "");
  EXPECT_EQ(value, 0.5);
  for (const char* text : {"nan", "-nan", "inf", "infinity", "-inf"}) {
    EXPECT_NE(number_problem(text).find("is not a finite number"), std::string::npos) << text;
  }
  for (const char* text : {".nan", ".inf", "0x1p3", "1,5", "1.5f", "one", "--1", "1e", "+1"}) {
    EXPECT_NE(number_problem(text).find("is not a decimal number"), std::string::npos) << text;
  }
  EXPECT_EQ(number_problem("1e400"), "1e400 is out of range; accepted: any number in double precision");
}

TEST(ParseValueTest, OpenEndsOfARangeAreNotAccepted) {
  EXPECT_EQ(number_problem("0", {0, 1, true, true}), "0 is out of range; accepted: above 0 to below 1");
  EXPECT_EQ(number_problem("1", {0, 1, true, true}), "1 is out of range; accepted: above 0 to below 1");
  EXPECT_EQ(number_problem("0.5", {0, 1, true, true}), "");
  EXPECT_EQ(number_problem("-1", {0, kNoLimit}), "-1 is out of range; accepted: 0 or more");
}

TEST(ParseValueTest, NumbersDoNotFollowTheLocale) {
  const char* const comma_locale = std::setlocale(LC_NUMERIC, "de_DE.UTF-8");
  double value = 0;
  EXPECT_EQ(read_number("0.25", {0, 1}, value), "");
  EXPECT_EQ(value, 0.25);
  EXPECT_EQ(number_text(0.25), "0.25");
  if (comma_locale) std::setlocale(LC_NUMERIC, "C");
}

TEST(ParseValueTest, SwitchesAreTrueOrFalseAndNothingElse) {
  bool value = false;
  EXPECT_EQ(read_switch("true", value), "");
  EXPECT_TRUE(value);
  for (const char* text : {"yes", "no", "on", "off", "1", "0", "True", "TRUE", "y", ""}) {
    EXPECT_NE(read_switch(text, value).find("write true or false"), std::string::npos) << text;
  }
}

TEST(ParseValueTest, ListsNameTheItemThatIsWrong) {
  std::vector<double> value;
  EXPECT_EQ(read_list("0.1, 0.2,3", {0, 5}, value), "");
  EXPECT_EQ(value, (std::vector<double>{0.1, 0.2, 3}));
  EXPECT_EQ(read_list("0.1,9", {0, 5}, value), "item 2: 9 is out of range; accepted: 0 to 5");
  EXPECT_EQ(read_list("0.1,,1", {0, 5}, value), "item 2: no value given; accepted: 0 to 5");
  EXPECT_EQ(value.size(), 3u) << "a list with a wrong item leaves the old value";
}

TEST(ParseValueTest, AShareOfAnEpochIsAnIntervalOnlyWhereItIsAskedFor) {
  Interval value;
  EXPECT_EQ(read_interval_or_share("0.1e", value), "");
  EXPECT_EQ(value.unit, Interval::Unit::epochs);
  EXPECT_DOUBLE_EQ(value.amount, 0.1);
  EXPECT_EQ(interval_text(value), "0.1e");
  EXPECT_EQ(read_interval_or_share("2e", value), "");
  EXPECT_EQ(interval_text(value), "2e");
  EXPECT_NE(read_interval("0.1e", value), "");
  EXPECT_NE(read_interval_or_share("1.5e", value), "");
  EXPECT_NE(read_interval_or_share("0.0e", value), "");
}

TEST(ParseValueTest, IntervalsHaveAUnit) {
  Interval value;
  EXPECT_EQ(read_interval("2e", value), "");
  EXPECT_EQ(value.unit, Interval::Unit::epochs);
  EXPECT_EQ(value.amount, 2);
  EXPECT_EQ(read_interval("2000u", value), "");
  EXPECT_EQ(value.unit, Interval::Unit::updates);
  EXPECT_EQ(value.amount, 2000);
  EXPECT_EQ(read_interval("1.5h", value), "");
  EXPECT_EQ(value.unit, Interval::Unit::seconds);
  EXPECT_EQ(value.amount, 5400);
  EXPECT_EQ(read_interval("never", value), "");
  EXPECT_EQ(value.unit, Interval::Unit::never);
  EXPECT_NE(read_interval("50", value).find("\"50\" has no unit; accepted: 1e (epochs), 2000u (updates)"),
            std::string::npos);
  for (const char* text : {"", "e", "0e", "1.5e", "-1u", "0s", "-3m", "1w", "10 m", "nans", "1e2u"}) {
    EXPECT_NE(read_interval(text, value).find("; accepted: 1e (epochs)"), std::string::npos) << text;
  }
}

TEST(ParseValueTest, DurationsHaveAUnitUnlessZero) {
  double seconds = -1;
  EXPECT_EQ(read_duration("10h", seconds), "");
  EXPECT_EQ(seconds, 36000);
  EXPECT_EQ(read_duration("90m", seconds), "");
  EXPECT_EQ(seconds, 5400);
  EXPECT_EQ(read_duration("600s", seconds), "");
  EXPECT_EQ(seconds, 600);
  EXPECT_EQ(read_duration("0", seconds), "");
  EXPECT_EQ(seconds, 0);
  EXPECT_NE(read_duration("600", seconds).find("\"600\" has no unit"), std::string::npos);
  EXPECT_NE(read_duration("never", seconds).find("is not a duration"), std::string::npos);
  EXPECT_NE(read_duration("-5m", seconds).find("is not a duration"), std::string::npos);
}

TEST(ParseValueTest, RenderedValuesReadBackAsTheSameBits) {
  for (const double value : {0.1, 1e-8, 4.0 / 3.0, 5e-4, 0.9998, 65536.0, 1e22, 2.2250738585072014e-308}) {
    double again = 0;
    ASSERT_EQ(read_number(number_text(value), {-kNoLimit, kNoLimit}, again), "");
    EXPECT_EQ(again, value) << number_text(value);
  }
  for (const char* text : {"1e", "2000u", "10m", "2h", "1d", "30s", "0.25s", "never"}) {
    Interval value;
    ASSERT_EQ(read_interval(text, value), "");
    EXPECT_EQ(interval_text(value), text);
  }
  EXPECT_EQ(seconds_text(5400), "90m");
  EXPECT_EQ(seconds_text(0), "0");
}

TEST(ParseValueTest, RangesReadAsWords) {
  EXPECT_EQ(range_text(1, 16), "1 to 16");
  EXPECT_EQ(range_text(Bounds{0, 1, true, false}), "above 0 to 1");
  EXPECT_EQ(range_text(Bounds{0, kNoLimit}), "0 or more");
  EXPECT_EQ(range_text(Bounds{0, kNoLimit, true}), "above 0");
  EXPECT_EQ(range_text(Bounds{-kNoLimit, kNoLimit}), "any number");
}

TEST(ParseValueTest, ShownTextIsPrintableAndShort) {
  EXPECT_EQ(shown("a\nb"), "\"a\\x0ab\"");
  EXPECT_EQ(shown(std::string(70, 'x')), "\"" + std::string(60, 'x') + "...\"");
}

TEST(ParseValueTest, DistinguishesUtf8FromOtherBytes) {
  for (const char* text : {"", "abc", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80"})
    EXPECT_TRUE(is_utf8(text)) << text;
  for (const char* text :
       {"\xff", "\xc3", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\x80", "a\xe2\x82"}) {
    EXPECT_FALSE(is_utf8(text)) << shown(text);
  }
}

}  // namespace
}  // namespace stoker::config
