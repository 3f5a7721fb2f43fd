// SPDX-License-Identifier: Apache-2.0
#include "observe/report/run_record.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "observe/report/report_page.h"
#include "tests/temporary_directory.h"

namespace stoker::observe {
namespace {

using Values = std::vector<double>;
using Words = std::vector<std::string>;

class RunRecordTest : public ::testing::Test {
 protected:
  RunRecordTest() {
    folder_.write("summary.csv",
                  "epoch,train_loss,eval_loss,eval_f1,lr,updates,best,train_seconds,eval_seconds,data_wait_share\n"
                  "1,0.5,0.4,0.7,0.1,10,1,60,5,0.25\n2,0.3,,,0.1,20,0,60,0,0.25\n3,0.2");
    folder_.write("metrics.jsonl", start() + report(5, 0.6, 30) + report(15, 0.4, 90));
  }
  static std::string start(const std::string& event = "start", int updates = 0) {
    return R"({"event":")" + event + R"(","updates":)" + std::to_string(updates) +
           R"(,"updates_per_epoch":10,"time":"2026-11-21T05:41:36Z"})" + "\n";
  }
  static std::string report(int updates, double loss, int elapsed_seconds) {
    return R"({"event":"report","updates":)" + std::to_string(updates) + R"(,"train_loss":)" + std::to_string(loss) +
           R"(,"elapsed_seconds":)" + std::to_string(elapsed_seconds) +
           R"(,"gradient_norm":null,"resources":{"cpu_percent":50,"gpu_percent":null},"loader":{"read_seconds":3,"decode_seconds":1}})" +
           "\n";
  }
  RunRecord record() const { return read_run_record(folder_.path() + "/"); }

  const stoker::fixtures::TemporaryDirectory folder_;
};

TEST_F(RunRecordTest, ReadsMetricsByTheirNamesWhateverTheyAre) {
  const RunRecord run = record();
  EXPECT_EQ(run.path, folder_.path());
  EXPECT_EQ(run.by_epoch.at("train_loss").y, (Values{0.5, 0.3}));
  EXPECT_EQ(run.by_epoch.at("train_loss").x, (Values{1, 2}));
  EXPECT_EQ(run.by_epoch.at("eval_f1").y, Values{0.7}) << "an epoch without evaluation has no point";
  EXPECT_EQ(run.epoch_rows.size(), 2u) << "a half-written row is left out";
  EXPECT_EQ(run.by_report.at("train_loss").x, (Values{0.5, 1.5}));
  EXPECT_EQ(run.by_minute.at("resources.cpu_percent").x, (Values{0.5, 1.5}));
  EXPECT_EQ(run.by_report.count("resources.gpu_percent"), 0u) << "n/a is no point at 0";
  EXPECT_EQ(run.by_report.count("gradient_norm"), 0u);
  EXPECT_EQ(run.state, "training");
}

TEST_F(RunRecordTest, AResumeReplacesWhatItWentThroughAgain) {
  folder_.write("metrics.jsonl", start() + report(5, 0.6, 30) + report(15, 0.4, 90) + start("resume", 10) +
                                     report(15, 0.35, 20) + R"({"event":"finish","reason":"signal:TERM"})" + "\n");
  const RunRecord run = record();
  EXPECT_EQ(run.by_report.at("train_loss").y, (Values{0.6, 0.35}));
  EXPECT_EQ(run.by_minute.at("train_loss").y, (Values{0.6, 0.35}));
  EXPECT_DOUBLE_EQ(run.by_minute.at("train_loss").x.back(), (30 + 20) / 60.0);
  EXPECT_EQ(run.resumes, 1);
  EXPECT_EQ(run.state, "stopped (signal:TERM)");
}

TEST_F(RunRecordTest, DamagedLinesAreCountedAndLeftOut) {
  folder_.write("metrics.jsonl", start() + "{\"event\":\"rep\n" + std::string(20, '\0') + "\n[1]\n{\"event\":7}\n" +
                                     report(5, 0.6, 30) + "{\"ev");
  const RunRecord run = record();
  EXPECT_EQ(run.damaged_lines, 5);
  EXPECT_EQ(run.by_report.at("train_loss").y, Values{0.6});
}

std::string diagnosed(const std::string& event, int updates, const std::string& verdict, int gain) {
  return R"({"event":")" + event + R"(","updates":)" + std::to_string(updates) + R"(,"diagnosis":{"verdict":")" +
         verdict + R"(","evidence":["waits for data 47%"],"advice":"--num-workers 2 <b>","gain_percent":)" +
         std::to_string(gain) + "}}\n";
}

TEST_F(RunRecordTest, VerdictsAreListedOncePerChangeAndTheLastOneIsShownFirst) {
  folder_.write("metrics.jsonl", start() + diagnosed("report", 5, "sync-bound", 20) +
                                     diagnosed("report", 8, "sync-bound", 22) +
                                     diagnosed("epoch", 10, "copy-bound", 30));
  const RunRecord run = record();
  ASSERT_EQ(run.diagnoses.size(), 2u);
  EXPECT_EQ(run.diagnoses[0].gain_percent, 22);
  EXPECT_EQ(run.diagnoses[1].verdict, "copy-bound");
  const std::string html = diagnosis_section({run});
  EXPECT_NE(html.find("<b>copy-bound</b>"), std::string::npos);
  EXPECT_NE(html.find("--num-workers 2 &lt;b&gt;"), std::string::npos) << html;
  EXPECT_NE(html.find("30% more images/s"), std::string::npos);
  EXPECT_EQ(diagnosis_section({RunRecord()}), "");
}

TEST_F(RunRecordTest, TheTimesOfTheLastEpochAreATable) {
  folder_.write(
      "metrics.jsonl",
      start() +
          R"({"event":"epoch","updates":10,"times":{"updates":10,"update":{"mean_seconds":0.05,)"
          R"("p95_seconds":0.06,"max_seconds":0.2},"parts":{"wait":{"mean_seconds":0.03,"p95_seconds":0.04,"max_seconds":0.15}},)"
          R"("sample":{"decode":{"mean_seconds":0.001,"p95_seconds":0.002,"max_seconds":0.004}}}})"
          "\n");
  const RunRecord run = record();
  ASSERT_EQ(run.step_times.size(), 2u);
  EXPECT_EQ(run.step_times[1].name, "wait");
  const std::string html = time_section({run});
  EXPECT_NE(html.find("<td>wait</td><td class=\"n\">30ms</td><td class=\"n\">40ms</td><td class=\"n\">150ms</td>"),
            std::string::npos)
      << html;
  EXPECT_NE(html.find("<td>decode</td><td class=\"n\">1ms</td>"), std::string::npos);
}

TEST_F(RunRecordTest, PicturesArePartOfThePageAndNothingElseIs) {
  folder_.write(
      "worst.json",
      R"({"samples":[{"name":"val/cat/1.jpg","truth":"cat","predicted":"dog 97%","error":0.97,"jpeg":"/9j/4AA="},)"
      R"({"name":"x","truth":"","predicted":"","error":1,"jpeg":"AA\"><script>"}]})");
  const RunRecord run = record();
  ASSERT_EQ(run.worst.size(), 1u) << "what is not base64 is no picture";
  const std::string html = worst_section({run});
  EXPECT_NE(html.find("src=\"data:image/jpeg;base64,/9j/4AA=\""), std::string::npos);
  EXPECT_NE(html.find("is <b>cat</b><br>said <b>dog 97%</b>"), std::string::npos);
  folder_.write("worst.json", "{\"samples\": 7}");
  EXPECT_TRUE(record().worst.empty());
}

TEST_F(RunRecordTest, AFolderWithoutARunIsMissingInput) {
  const stoker::fixtures::TemporaryDirectory empty;
  try {
    read_run_record(empty.path());
    FAIL();
  } catch (const core::Error& error) {
    EXPECT_EQ(error.kind(), core::ErrorKind::no_input);
  }
}

TEST_F(RunRecordTest, OptionsComeWithoutTheirOrigins) {
  folder_.write("config.yaml",
                "data:\n  data-dir: \"a b\"       # flag\n  mean: [0.5, 0.5]    # default\nrun:\n  resume: auto\n");
  const RunRecord run = record();
  EXPECT_EQ(run.option("data-dir"), "a b");
  EXPECT_EQ(run.option("mean"), "[0.5, 0.5]");
  EXPECT_EQ(run.option("resume"), "auto");
  EXPECT_EQ(run.option("none"), "");
}

TEST_F(RunRecordTest, AConfusionMatrixMustBeSquare) {
  folder_.write("eval/confusion.csv", "true\\predicted,\"a,b\",c\n\"a,b\",3,1\nc,0,4\n");
  EXPECT_EQ(record().confusion.class_names, (Words{"a,b", "c"}));
  EXPECT_EQ(record().confusion.counts, (std::vector<std::vector<int64_t>>{{3, 1}, {0, 4}}));
  for (const char* const bad : {"t,a,b\na,1,2\n", "t,a\na,1,2\n", "t,a\na,-1\n", "t,a\na,x\n"}) {
    folder_.write("eval/confusion.csv", bad);
    EXPECT_THROW(record(), core::Error) << bad;
  }
}

TEST_F(RunRecordTest, ACountIsAWholeNumberThatFits) {
  for (const char* const bad : {"1.5", "1e300", "-0.5", "inf"}) {
    folder_.write("eval/confusion.csv", std::string("t,a\na,") + bad + "\n");
    EXPECT_THROW(record(), core::Error) << bad;
  }
}

TEST_F(RunRecordTest, RowsOfTheSummaryThatAreNoRowsAreLeftOut) {
  const std::string nul(5, '\0');
  folder_.write("summary.csv", "epoch,train_loss\n1,0.5\n2,\"\"0.4\n" + nul + "\n3,0.3\n4,\"0.2");
  EXPECT_EQ(record().epoch_rows, (std::vector<Words>{{"1", "0.5"}, {"3", "0.3"}}));
  EXPECT_EQ(record().by_epoch.at("train_loss").x, (Values{1, 3}));
}

TEST_F(RunRecordTest, RowsAreReadByTheHeaderThatStandsAboveThem) {
  folder_.write("summary.csv", "epoch,lr,old\n1,0.1,x\nepoch,train_loss,lr\n2,0.5,0.2\n");
  EXPECT_EQ(record().epoch_columns, (Words{"epoch", "lr", "old", "train_loss"}));
  EXPECT_EQ(record().epoch_rows, (std::vector<Words>{{"1", "0.1", "x", ""}, {"2", "0.2", "", "0.5"}}));
  EXPECT_EQ(record().by_epoch.at("lr").y, (Values{0.1, 0.2}));
}

TEST_F(RunRecordTest, EpochsThatAnOlderProgramCountedFromZeroCountFromOne) {
  folder_.write("summary.csv", "epoch,train_loss\n0,0.5\n1,0.4\n");
  EXPECT_EQ(record().epoch_rows, (std::vector<Words>{{"1", "0.5"}, {"2", "0.4"}}));
}

TEST_F(RunRecordTest, OptionsAreReadAsYaml) {
  folder_.write("config.yaml", "data:\n  data-dir: \"a # \\\"b\\\": c\"   # flag\n  mean: [0.5, 0.25]\nseed: 7\n");
  EXPECT_EQ(record().option("data-dir"), "a # \"b\": c");
  EXPECT_EQ(record().option("mean"), "[0.5, 0.25]");
  EXPECT_EQ(record().option("seed"), "7");
  folder_.write("config.yaml", "data: [1, {a: 2}\n");
  EXPECT_NO_THROW(record());
  folder_.write("config.yaml", std::string(100, '\0'));
  EXPECT_TRUE(record().options.empty());
}

TEST_F(RunRecordTest, ThePageStandsAlone) {
  folder_.write("eval/confusion.csv", "true\\predicted,a,b\na,3,1\nb,0,4\n");
  const std::string page = report_page({record()}, "stoker", "now");
  for (const char* const part : {"http", "src=", "url(", "<script", "@import", "<link rel=\"style"}) {
    EXPECT_EQ(page.find(part), std::string::npos) << part << " would be loaded";
  }
  for (const char* const part :
       {"prefers-color-scheme:dark", "width=device-width", ">f1</figcaption>", ">Loss</figcaption>", "Confusion matrix",
        "Where the time went", "reading files <b>75.0%</b>"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part;
  }
  EXPECT_NE(page.find("waiting for data <b>24.0%</b>"), std::string::npos) << "30 of 125 seconds";
}

TEST_F(RunRecordTest, ThePageSetsWhatWasPredictedAgainstWhatWasSeen) {
  EXPECT_EQ(report_page({record()}, "stoker", "now").find("predicted and observed"), std::string::npos);
  const std::string predicted =
      R"("predicted":{"host":{"bytes":400000000,"lines":[{"name":"batch buffers","bytes":96000000,"detail":""}]},"device":null})";
  folder_.write("plan.json", "{" + predicted + R"(,"observed":{"host_bytes":412000000,"device_bytes":null}})");
  const RunRecord run = record();
  ASSERT_EQ(run.memory.size(), 1u);
  EXPECT_EQ(run.memory[0].where, "host");
  const std::string page = report_page({run}, "stoker", "now");
  for (const char* const part :
       {"Memory, predicted and observed", "400.0 MB", "412.0 MB", "+3.0 %", "batch buffers", "96.0 MB"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part;
  }
  folder_.write("plan.json", "{" + predicted + R"(,"observed":null})");  // under way, or killed
  EXPECT_NE(report_page({record()}, "stoker", "now").find("n/a</td></tr>"), std::string::npos);
  folder_.write("plan.json", R"({"predicted":7})");
  EXPECT_TRUE(record().memory.empty());
}

TEST_F(RunRecordTest, SeveralRunsShowWhereTheyDiffer) {
  folder_.write("config.yaml", "optim:\n  lr: 0.1\n  momentum: 0.9\n");
  RunRecord other = record();
  other.path = "other";
  other.options[0].second = "0.2";
  const std::string page = report_page({record(), other}, "stoker", "now");
  const size_t differing = page.find("Options that differ");
  ASSERT_NE(differing, std::string::npos);
  const size_t overview = page.find("Overview");
  EXPECT_LT(differing, overview) << "options that differ come first";
  const std::string table = page.substr(differing, overview - differing);
  EXPECT_NE(table.find("lr"), std::string::npos);
  EXPECT_EQ(table.find("momentum"), std::string::npos);
  EXPECT_NE(page.find("other validation"), std::string::npos);
}

TEST_F(RunRecordTest, NothingInAFileBecomesMarkup) {
  folder_.write("config.yaml", "data:\n  data-dir: \"<img src=x onerror=alert(1)>\"\n");
  folder_.write("summary.csv", "epoch,eval_<b>x,updates,best\n0,0.5,10,1\n");
  folder_.write("metrics.jsonl", start() + R"({"event":"finish","reason":"<script>alert(1)</script>"})" + "\n");
  folder_.write("eval/confusion.csv", "t,<i>a\n<i>a,3\n");
  RunRecord run = record();
  run.path = "</title><script>";
  const std::string page = report_page({run}, "<u>", "<u>");
  for (const char* const part : {"<img", "<script", "<i>a", "<u>", "<b>x"}) {
    EXPECT_EQ(page.find(part), std::string::npos) << part;
  }
}

}  // namespace
}  // namespace stoker::observe
