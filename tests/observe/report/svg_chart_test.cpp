// SPDX-License-Identifier: Apache-2.0
#include "observe/report/svg_chart.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace stoker::observe {
namespace {

using Values = std::vector<double>;

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

Chart chart_with(const ChartLine& line) {
  Chart chart;
  chart.title = "Loss";
  chart.x_label = "epochs";
  chart.y_label = "nats";
  chart.lines = {line};
  return chart;
}

TEST(SvgChartTest, TicksAreRoundAndCoverTheData) {
  EXPECT_EQ(nice_ticks(0, 100, 5), (Values{0, 20, 40, 60, 80, 100}));
  const Values ticks = nice_ticks(0.13, 0.94, 5);
  EXPECT_LE(ticks.front(), 0.13);
  EXPECT_GE(ticks.back(), 0.94);
  EXPECT_LE(ticks.size(), 7u);
  EXPECT_GE(nice_ticks(0, 0, 5).size(), 2u);
  EXPECT_GE(nice_ticks(3, 3, 5).size(), 2u);
}

TEST(SvgChartTest, LargeNumbersAreShort) {
  EXPECT_EQ(tick_text(0), "0");
  EXPECT_EQ(tick_text(0.25), "0.25");
  EXPECT_EQ(tick_text(12000), "12k");
  EXPECT_EQ(tick_text(2.5e6), "2.5M");
  EXPECT_EQ(tick_text(-15000), "-15k");
}

TEST(SvgChartTest, NamesItsAxesWithUnits) {
  const std::string svg = svg_chart(chart_with({"training", {1, 2, 3}, {0.9, 0.5, 0.25}}));
  EXPECT_NE(svg.find(">epochs</text>"), std::string::npos);
  EXPECT_NE(svg.find(">nats</text>"), std::string::npos);
  EXPECT_NE(svg.find("training <b>0.25</b>"), std::string::npos) << svg;
  EXPECT_EQ(count_of(svg, "<circle"), 3u);
}

TEST(SvgChartTest, LowValuesStandLow) {
  const std::string svg = svg_chart(chart_with({"a", {0, 10}, {100, 0}}));
  EXPECT_NE(svg.find("M54.0 28.0L318.0 184.0"), std::string::npos) << svg;
}

TEST(SvgChartTest, NoAxisGoesBeyondAll) {
  for (const double value : {100.0, 99.99, 0.0}) {
    Chart chart = chart_with({"top1", {1, 2}, {value, value}});
    chart.y_ceiling = 100;
    const std::string svg = svg_chart(chart);
    EXPECT_EQ(svg.find(">120<"), std::string::npos) << svg;
    EXPECT_EQ(svg.find(">100<") == std::string::npos, value == 0) << svg;
  }
}

TEST(SvgChartTest, IsReadAloudAndNamesWhatHasNoNumber) {
  Chart chart = chart_with({"runs", {0, 1}, {3, 4}});
  chart.lines[0].points_only = true;
  chart.x_names = {"sgd", "a name that does not fit below an axis"};
  const std::string svg = svg_chart(chart);
  EXPECT_NE(svg.find("aria-label=\"Loss: nats over epochs. runs: 2 points, lowest 3, highest 4.\""), std::string::npos)
      << svg;
  EXPECT_NE(svg.find("<li>A: sgd</li><li>B: a name that"), std::string::npos) << svg;
  EXPECT_EQ(svg.find("<path d=\"M"), svg.find("<path d=\"M0 4")) << "no line joins them\n" << svg;
}

TEST(SvgChartTest, OnePointAndNoPoint) {
  EXPECT_EQ(svg_chart(chart_with({"a", {}, {}})), "");
  EXPECT_EQ(svg_chart(Chart()), "");
  const std::string svg = svg_chart(chart_with({"a", {1}, {0}}));
  EXPECT_EQ(count_of(svg, "<circle"), 1u);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

TEST(SvgChartTest, ManyPointsAreAveragedWithANote) {
  ChartLine line = {"a", {}, {}};
  for (int i = 0; i < 10'000; ++i) {
    line.x.push_back(i);
    line.y.push_back(i % 2);
  }
  const std::string svg = svg_chart(chart_with(line));
  EXPECT_LT(svg.size(), 20'000u);
  EXPECT_NE(svg.find("up to 25 values per point"), std::string::npos);
}

TEST(SvgChartTest, ValuesOfSeveralDecadesStandOnALogarithmicAxis) {
  Chart chart = chart_with({"steps", {0, 5, 10}, {10, 0.1, 0.001}});
  EXPECT_EQ(svg_chart(chart).find("logarithmic"), std::string::npos) << "only where it is requested";
  chart.may_be_logarithmic = true;
  const std::string svg = svg_chart(chart);
  EXPECT_NE(svg.find("nats, logarithmic"), std::string::npos) << svg;
  EXPECT_NE(svg.find("M54.0 28.0L186.0 106.0L318.0 184.0"), std::string::npos) << "equal steps down\n" << svg;
  for (const char* const tick : {">10<", ">1<", ">0.1<", ">0.01<", ">0.001<"}) {
    EXPECT_NE(svg.find(tick), std::string::npos) << tick;
  }
  chart.lines[0].y[2] = 0;
  EXPECT_EQ(svg_chart(chart).find("logarithmic"), std::string::npos) << "10 and 0.1 are two decades";
  chart.lines = {{"with a zero", {0, 5, 10}, {0, 10, 0.01}, 0, false}};
  EXPECT_NE(svg_chart(chart).find("M54.0 184.0L186.0 28.0L318.0 184.0"), std::string::npos) << svg_chart(chart);
}

TEST(SvgChartTest, AFewLowPointsKeepTheAxisLinear) {
  ChartLine line = {"cosine", {}, {}, 0, false};
  for (int i = 0; i < 100; ++i) {
    line.x.push_back(i);
    line.y.push_back(i < 94 ? 1.0 : 1e-6);
  }
  Chart chart = chart_with(line);
  chart.may_be_logarithmic = true;
  EXPECT_EQ(svg_chart(chart).find("logarithmic"), std::string::npos);
}

TEST(SvgChartTest, LabelsCannotBreakOut) {
  const std::string svg = svg_chart(chart_with({"<script>alert(1)</script>\"'&\x01", {1}, {2}}));
  EXPECT_EQ(svg.find("<script"), std::string::npos);
  EXPECT_NE(svg.find("&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;\\x01"), std::string::npos) << svg;
}

}  // namespace
}  // namespace stoker::observe
