// SPDX-License-Identifier: Apache-2.0
#include "observe/report/run_record.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "observe/report/report_page.h"
#include "observe/report/run_record_files.h"
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
      R"({"samples":[{"name":"val/cat/1.jpg","truth":"cat","predicted":"dog 97%","error":0.97,"jpeg":"/9j/4AA=","heat":"/9j/5BB="},)"
      R"({"name":"y","truth":"","predicted":"","error":1,"jpeg":"AA","heat":"AA\"><script>"},)"
      R"({"name":"x","truth":"","predicted":"","error":1,"jpeg":"AA\"><script>"}]})");
  const RunRecord run = record();
  ASSERT_EQ(run.worst.size(), 1u) << "what is not base64 is no picture";
  const std::string html = worst_section({run});
  EXPECT_NE(html.find("src=\"data:image/jpeg;base64,/9j/4AA=\""), std::string::npos);
  EXPECT_NE(html.find("red is where the picture speaks for dog 97%\" src=\"data:image/jpeg;base64,/9j/5BB=\""),
            std::string::npos);
  EXPECT_NE(html.find("true <b>cat</b><br>predicted <b>dog 97%</b>"), std::string::npos);
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

TEST_F(RunRecordTest, ASummaryThatAnotherProgramWroteIsReadAndWhatIsLeftOutHasItsRow) {
  const std::vector<Words> rows = {{"1", "0.5"}, {"2", "0.25"}};
  for (const char* const text : {"Epoch,Train_Loss\n1,0.5\n2,0.25\n", "epoch,train_loss,\n1,0.5,\n2,0.25,\n",
                                 "epoch;train_loss\n1;0,5\n2;0,25\n", "epoch, train_loss\n1, 0.5\n\n,,\n2, 0.25"}) {
    folder_.write("summary.csv", text);
    const RunRecord run = record();
    EXPECT_EQ(run.epoch_columns, (Words{"epoch", "train_loss"})) << text;
    EXPECT_EQ(run.epoch_rows, rows) << text;
    EXPECT_TRUE(run.left_out.empty()) << text;
  }
  folder_.write("summary.csv", "epoch,note,train_loss\n1,\"a\nb\",0.5\n2,c\n3,d,0.25\n4,\"e,0.1\n5,f,0.2\n");
  const RunRecord run = record();
  EXPECT_EQ(run.by_epoch.at("train_loss").x, (Values{1, 3, 5}));
  ASSERT_EQ(run.left_out.size(), 1u);
  EXPECT_NE(run.left_out[0].find("summary.csv:4: 2 fields instead of 3, and 1 more"), std::string::npos)
      << run.left_out[0];
  EXPECT_NE(report_page({run}, "stoker", "now").find("summary.csv:4: 2 fields"), std::string::npos);
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
       {"prefers-color-scheme:dark", "width=device-width", ">f1</figcaption>", ">Loss</figcaption>",
        "Confusion matrix</h2>", "Where the time went", "reading files <b>75.0%</b>"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part;
  }
  EXPECT_NE(page.find("waiting for data <b>24.0%</b>"), std::string::npos) << "30 of 125 seconds";
}

TEST_F(RunRecordTest, ThePageShowsEachClassTheLowestF1First) {
  folder_.write("eval/confusion.csv", "true\\predicted,a,b,c,d\na,8,2,0,0\nb,5,5,0,0\nc,0,0,0,0\nd,1,0,0,0\n");
  const std::string page = report_page({record()}, "stoker", "now");
  const size_t title = page.find("<figcaption>Classes, the lowest F1 first</figcaption>");
  ASSERT_NE(title, std::string::npos);
  const std::string never =
                        ">d</th><td class=\"n\">1</td><td class=\"n\">0.0 %</td><td class=\"n\"></td><td "
                        "class=\"n\">0.0 %<",
                    b = ">b</th><td class=\"n\">10</td><td class=\"n\">50.0 %</td><td class=\"n\">71.4 %</td><td "
                        "class=\"n\">58.8 %<",
                    a = ">a</th><td class=\"n\">10</td><td class=\"n\">80.0 %</td><td class=\"n\">57.1 %</td><td "
                        "class=\"n\">66.7 %<";
  EXPECT_LT(page.find(never, title), page.find(b, title));
  EXPECT_LT(page.find(b, title), page.find(a, title));
  EXPECT_NE(page.find(a, title), std::string::npos);
  EXPECT_EQ(page.find(">c</th><td class=\"n\">0</td>", title), std::string::npos) << "no sample, never predicted";
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
  const std::string under_way = report_page({record()}, "stoker", "now");
  EXPECT_NE(under_way.find("Memory, predicted</h2>"), std::string::npos);
  EXPECT_EQ(under_way.find("n/a"), std::string::npos) << "unknown values have no row";
  folder_.write("plan.json", R"({"predicted":7})");
  EXPECT_TRUE(record().memory.empty());
}

TEST_F(RunRecordTest, SeveralRunsAreATableTheBestFirstWithWhatSomebodyChose) {
  folder_.write("config.yaml",
                "optim:\n  lr: 0.1        # --lr\n  momentum: 0.9    # default\n  warmup: 3   # auto: of --lr\n");
  RunRecord worse = record(), best = record();
  EXPECT_EQ(worse.chosen, Words{"lr"});
  worse.path = "all/worse";
  best.path = "all/best";
  best.options[0].second = "0.2";
  best.options[2].second = "6";
  best.epoch_rows[0][3] = "0.9";  // eval_f1
  EXPECT_EQ(differing_options({&worse, &best}), Words{"lr"}) << "warmup follows from lr";
  const std::string page = report_page({worse, best}, "stoker", "now");
  const size_t table = page.find("aria-label=\"Runs, the best first\"");
  ASSERT_NE(table, std::string::npos);
  const std::string rows = page.substr(table, page.find("</table>", table) - table);
  EXPECT_LT(rows.find("</span>best<"), rows.find("</span>worse<")) << "without their common folder\n" << rows;
  EXPECT_NE(rows.find("aria-sort=\"descending\">best f1<"), std::string::npos) << rows;
  EXPECT_NE(rows.find("<td class=\"n\">0.9</td><td class=\"n\">1</td><td>0.2</td>"), std::string::npos) << rows;
  EXPECT_EQ(rows.find("momentum"), std::string::npos);
  EXPECT_NE(page.find("f1 over lr</figcaption>"), std::string::npos);
  for (RunRecord* const run : {&worse, &best}) {
    run->options.emplace_back("seed", run->path);
    run->options.emplace_back("data-dir", run->path);
    run->chosen.insert(run->chosen.end(), {"seed", "data-dir"});
  }
  EXPECT_EQ(differing_options({&worse, &best}), (Words{"data-dir", "lr", "seed"})) << "other data are no ranking";
  const std::string seeds = report_page({worse, best}, "stoker", "now");
  EXPECT_EQ(seeds.find("f1 over seed"), std::string::npos) << "a seed is not tuned";
  EXPECT_NE(seeds.find("f1 over lr"), std::string::npos);
  EXPECT_EQ(page.find("f1 over warmup</figcaption>"), std::string::npos);
  EXPECT_NE(page.find("</svg>best <b>0.4</b>"), std::string::npos) << "one line of each run in the chart of the loss";
}

TEST_F(RunRecordTest, APageOfASweepHasItsTable) {
  folder_.write("sweep.csv", "rank,lr,mean,better_than\n1,<b>,71.5,2\ntorn\n2,0.01,70,\n");
  const std::string page = report_page({record(), record()}, "stoker", "now", 0, read_sweep_tables(folder_.path()));
  const size_t table = page.find("aria-label=\"Sweep\"");
  ASSERT_NE(table, std::string::npos);
  const std::string rows = page.substr(table, page.find("</table>", table) - table);
  EXPECT_NE(rows.find("<th scope=\"col\">better than</th>"), std::string::npos) << rows;
  EXPECT_NE(rows.find("<tr><td>1</td><td>&lt;b&gt;</td><td>71.5</td><td>2</td></tr>"), std::string::npos) << rows;
  EXPECT_EQ(rows.find("torn"), std::string::npos);
  EXPECT_EQ(page.find("aria-label=\"Halving\""), std::string::npos);
  folder_.write("halving.csv", "rung,lr,advances\n1,0.1,1\n1,0.2,0\n");
  RunRecord stopped = record(), ended = record();
  stopped.options = {{"max-updates", "7"}, {"lr", "0.2"}};
  ended.options = {{"max-updates", "0"}, {"lr", "0.1"}};
  const std::string halved = report_page({stopped, ended}, "stoker", "now", 0, read_sweep_tables(folder_.path()));
  EXPECT_NE(halved.find("<tr><td>1</td><td>0.2</td><td>0</td></tr>"), std::string::npos) << halved;
  EXPECT_EQ(halved.find("max-updates"), std::string::npos) << "halving stopped it";
  EXPECT_EQ(report_page({record()}, "stoker", "now").find("aria-label=\"Sweep\""), std::string::npos);
  EXPECT_TRUE(read_sweep_tables("/nowhere").sweep.empty());
}

TEST_F(RunRecordTest, ARunIsJudgedByItsMetricAndRunsWithoutAResultComeLast) {
  folder_.write("config.yaml", "train:\n  eval-metric: loss\n");
  const std::optional<BestEpoch> by_loss = best_epoch(record());
  ASSERT_TRUE(by_loss);
  EXPECT_EQ(by_loss->metric, "loss");
  EXPECT_EQ(by_loss->value, 0.4);
  EXPECT_TRUE(by_loss->lower_is_better);
  BestEpoch other = *by_loss;
  other.value = 0.5;
  EXPECT_TRUE(is_better(by_loss, other));
  EXPECT_FALSE(is_better(other, by_loss));
  other.value = by_loss->value;
  EXPECT_FALSE(is_better(by_loss, other));
  other.loss = by_loss->loss + 0.1;
  EXPECT_TRUE(is_better(by_loss, other)) << "of equal values the lower loss";
  EXPECT_FALSE(is_better(other, by_loss));
  EXPECT_TRUE(is_better(other, std::nullopt));
  EXPECT_FALSE(is_better(std::nullopt, std::nullopt));
}

TEST_F(RunRecordTest, ThePageBeginsWithTheOutcomeAndHasNoRowWithoutAValue) {
  folder_.write("eval/confusion.csv", "true\\predicted,a,b\na,3,1\nb,0,4\n");
  folder_.write("worst.json",
                R"({"samples":[{"name":"1.jpg","truth":"a","predicted":"b 9%","wrong":true,"jpeg":"/9j/"}],)"
                R"("ordinary":[{"name":"2.jpg","truth":"a","predicted":"a 9%","wrong":false,"jpeg":"/9j/"}]})");
  folder_.write("eval/curves.json",
                R"({"threshold":0.5,"labels":[{"label":"<a>","recall":[0.5,1],"precision":[1,0.5],"threshold":[0,1],)"
                R"("f1":[0.7,0]}],"targets":[{"target":"yaw","true":[1,-4],"predicted":[2,0]}]})");
  const std::string page = report_page({record()}, "stoker", "now", 10);
  size_t before = 0;
  for (const char* const heading : {">Outcome<", ">Curves<", ">Confusion matrix<", ">Largest losses<",
                                    ">Ordinary predictions<", ">Precision, recall and F1<", ">Predicted against true<",
                                    ">How it ran<", ">Where the time went<", ">Speed and resources<"}) {
    const size_t at = page.find(heading + std::string("/h2>"));
    ASSERT_NE(at, std::string::npos) << heading;
    EXPECT_LT(before, at) << heading;
    before = at;
  }
  EXPECT_EQ(page.find("n/a"), std::string::npos);
  EXPECT_NE(page.find("<b>f1 0.7</b> in epoch 1"), std::string::npos);
  EXPECT_NE(page.find("http-equiv=\"refresh\" content=\"10\""), std::string::npos);
  EXPECT_NE(page.find("alt=\"1.jpg: true a, predicted b 9%\""), std::string::npos);
  EXPECT_NE(page.find("predicted <b class=\"wrong\">b 9%</b> (wrong)"), std::string::npos) << "not by colour alone";
  EXPECT_NE(page.find("aria-label=\"yaw: predicted over true. samples: 2 points, lowest 0, highest 2."),
            std::string::npos);
  EXPECT_NE(page.find("&lt;a&gt;"), std::string::npos);
  for (const char* const bad : {"[]", "{\"labels\":[{}]}",
                                "{\"threshold\":null,\"labels\":[{\"label\":\"a\",\"recall\":[1,0],"
                                "\"precision\":[1,0],\"threshold\":[0],\"f1\":[0]}],\"targets\":[]}"}) {
    folder_.write("eval/curves.json", bad);
    EXPECT_TRUE(record().label_curves.empty()) << bad;
  }
}

TEST_F(RunRecordTest, ManyRunsShareOneNoteOfEachKindAndTheLaterOnesAColour) {
  folder_.write("metrics.jsonl", start() + diagnosed("epoch", 10, "input-bound", 30));
  std::vector<RunRecord> runs;
  for (int i = 0; i < 9; ++i) {
    runs.push_back(record());
    runs.back().path = "r" + std::to_string(i);
    runs.back().damaged_lines = 2;
  }
  const std::string page = report_page(runs, "stoker", "now");
  const auto count_of = [&](const std::string& part) {
    size_t count = 0;
    for (size_t at = page.find(part); at != std::string::npos; at = page.find(part, at + 1)) ++count;
    return count;
  };
  EXPECT_EQ(count_of("class=\"verdict\""), 1u);
  EXPECT_NE(page.find("9 of 9 runs: "), std::string::npos);
  EXPECT_EQ(count_of("could not be read"), 1u);
  EXPECT_NE(page.find("3 more</li>"), std::string::npos);
}

TEST_F(RunRecordTest, NothingInAFileBecomesMarkup) {
  folder_.write("config.yaml", "data:\n  data-dir: \"<img src=x onerror=alert(1)>\"\n");
  folder_.write("summary.csv", "epoch,eval_<b>x,updates,best\n0,0.5,10,1\n");
  folder_.write("metrics.jsonl", start() + R"({"event":"finish","reason":"<script>alert(1)</script>"})" + "\n");
  folder_.write("eval/confusion.csv", "t,<i>a\n<i>a,3\n");
  RunRecord run = record();
  run.path = "</title><script>";
  std::string page = report_page({run}, "<u>", "<u>");
  page += report_page({run, record()}, "<u>", "<u>");
  for (const char* const part : {"<img", "<script", "<i>a", "<u>", "<b>x"}) {
    EXPECT_EQ(page.find(part), std::string::npos) << part;
  }
}

}  // namespace
}  // namespace stoker::observe
