// SPDX-License-Identifier: Apache-2.0
// Rows of the groups precision, device, run and log. Independent of how options are read or shown.
#include <limits>
#include <type_traits>

#include "config/table/declaration.h"
#include "config/table/parse_value.h"
#include "core/format.h"
#include "core/system/stop_signal.h"

namespace stoker::config {
namespace {

template <typename T>
bool is_set(const Auto<T>& value) {
  return !value.is_auto();
}
template <typename T>
bool is_set(const T&) {
  return true;
}
template <typename T>
T plain(const Auto<T>& value) {
  return value.value();
}
template <typename T>
T plain(const T& value) {
  return value;
}

/// One word for two fields. `on` keeps a type that was given before, as in --fp16 --amp.
template <typename Switch, typename Type>
std::string assign_amp(const std::string& text, Switch& amp, Type& dtype) {
  const bool is_off = text == "off" || text == "false";
  if (text == "auto" && std::is_same_v<Switch, Auto<bool>>) {
    amp = Switch();
    dtype = Type();
  } else if (text == "on" || text == "true") {
    amp = true;
  } else if (is_off || text == "bfloat16" || text == "float16") {
    amp = !is_off;
    dtype = text == "float16" ? AmpDtype::float16 : AmpDtype::bfloat16;
    if (is_off && std::is_same_v<Switch, Auto<bool>>) dtype = Type();
  } else {
    return shown(text) + " is not accepted; write auto, off, on, bfloat16 or float16";
  }
  return "";
}

template <typename Switch, typename Type>
std::string amp_text(const Switch& amp, const Type& dtype) {
  if (!is_set(amp)) return "auto";
  if (!plain(amp)) return "off";
  return !is_set(dtype) ? "on" : plain(dtype) == AmpDtype::float16 ? "float16" : "bfloat16";
}

template <template <typename> class Pick>
void declare_precision(Declaration& d, PrecisionOptionsOf<Pick>& o) {
  using Of = PrecisionOptionsOf<Pick>;
  d.group("precision", "Mixed precision and numerics");
  d.add_own(
       "amp", {&o.amp, &o.amp_dtype}, [&o](const std::string& text) { return assign_amp(text, o.amp, o.amp_dtype); },
       [&o] { return amp_text(o.amp, o.amp_dtype); })
      .value_switch({"auto", "off", "on", "bfloat16", "float16"}, [&o] { return !is_set(o.amp); })
      .alias({"use-amp"})
      .help(
          "Mixed precision; convolutions and matrix multiplications in bfloat16 or float16, weights in float32. Leave "
          "it at "
          "auto, which is bfloat16 where the device computes it natively and, on a CPU, the network trains faster with "
          "it; --amp alone is on, in float16 on a GPU without bfloat16; --no-amp is off.")
      .used_in_inference();
  d.add_switch("channels-last", o.channels_last)
      .help(
          "Keep images as NHWC in memory. Leave it at auto: on a CPU, and on CUDA with amp or tf32; a CPU without AVX2 "
          "or oneDNN tries both at the start.")
      .used_in_inference()
      .expert();
  d.add_switch("tf32", o.tf32)
      .help(
          "Let CUDA multiply float32 with 10-bit mantissas (TensorFloat-32); auto: on CUDA. Turn it off to compare "
          "with float32 elsewhere.")
      .used_in_inference()
      .expert();
  d.add("prove-backend", o.prove_backend, choice_codec<ProveBackend>("auto full off"))
      .help(
          "Check before the first update, in a process of its own, that libraries compute each operation of the "
          "network correctly on this machine; what is wrong is computed in another way, else the exit code is 83. "
          "Leave it at auto, which compares a sample and remembers what was proven; full compares every element again, "
          "which takes minutes; off checks nothing, which is recorded.")
      .per_process()
      .used_in_inference();
  d.add_parts("loss-scale", {{"INIT", o, &Of::init_scale, number_codec({1, 1e30})},
                             {"INTERVAL", o, &Of::scale_growth_interval, integer_codec(1, 1'000'000'000)}})
      .help(
          "float16: the loss scale at the start, halved whenever gradients overflow and doubled after INTERVAL updates "
          "without. Lower INIT where the first updates are all skipped.")
      .expert();
  d.add("min-scale", o.min_scale, number_codec({0, 1e30}))
      .alias({"min-loss-scale"})
      .help("float16: a loss scale below it ends the run with exit code 80. The default should suit every run.")
      .free_on_resume()
      .expert();
  d.add("max-skipped", o.max_skipped, integer_codec(0, 1'000'000'000))
      .unit("updates")
      .help(
          "float16: this many updates skipped in a row end the run with exit code 80; 0: no limit. The default should "
          "suit every run.")
      .free_on_resume()
      .expert();
}

Codec<std::string> signals_codec() {
  Codec<std::string> codec = text_codec("NAME[,..]", true);
  codec.parse = [](const std::string& text, std::string& value) {
    const std::vector<std::string> known = core::stop_signal_names();
    for (const std::string& name : text.empty() ? std::vector<std::string>() : split_words(text, ',')) {
      if (core::stop_signal_number(name) == 0) return shown(name) + " stops no run; signals: " + core::list_text(known);
    }
    value = text;
    return std::string();
  };
  return codec;
}

template <template <typename> class Pick>
void declare_device(Declaration& d, DeviceOptionsOf<Pick>& o) {
  d.group("device", "Devices");
  d.add("device", o.device, device_codec())
      .alias({"d"})
      .help(
          "Device to compute on: cpu, cuda or cuda:N; auto is cuda:0 where there is one, else cpu. Set it to choose a "
          "GPU; one that is missing is an error.")
      .per_process()
      .used_in_inference();
  d.add("threads", o.threads, integer_codec(1, 1024))
      .unit("threads")
      .help(
          "CPU threads inside one operation; auto is the number of CPUs this process may use, and 1 where there are "
          "several replicas, so that bits do not depend on the machine. Lower it where other work needs the CPUs.")
      .per_process()
      .used_in_inference();
  d.add("devices", o.devices, devices_codec())
      .takes_list()
      .alias({"num-devices"})
      .help(
          "Processes on this machine that work together, each on a GPU of its own, or all on the CPU: training "
          "distributes "
          "replicas over them, eval and predict batches. Set it to the number of GPUs, or list them: 0,2 are two "
          "processes on cuda:0 and cuda:2 (and 2, with its comma, is one on cuda:2); the result is bit-identical "
          "to that of one process, and a resume may have others.")
      .per_process()
      .used_in_inference();
  d.add("exchange", o.exchange, choice_codec<Exchange>("exact fast"))
      .value_in_older_runs("exact")
      .help(
          "How processes add their gradients: exact, in a tree over replicas, so that bits do not depend on the number "
          "of processes; fast, in the order of the transport's own all-reduce. Use fast where the exchange limits the "
          "run and equal bits do not matter.")
      .expert();
  d.add_switch("overlap-exchange", o.overlap_exchange)
      .help(
          "Exchange gradients while the backward pass still computes others, with the same bits. Turn it off to "
          "measure what it gains; without effect with grad-checkpointing.")
      .per_process()
      .expert();
  d.add("graphs", o.graphs, choice_codec<Graphs>("on off"))
      .help(
          "Capture forward, loss and backward of full batches as a CUDA graph and replay it; bit-identical. auto tries "
          "it where launching operations holds the device up, and keeps it where updates become shorter. Needs CUDA, "
          "LibTorch 2.1 or newer and one replica; not with grad-checkpointing. It has not run on a card yet.")
      .per_process()
      .expert();
  d.add("exchange-timeout", o.exchange_timeout_seconds, duration_codec())
      .help(
          "Time that processes wait for one of them in an update before the run ends with 76. Raise it on machines "
          "that stall; a process that sends no heartbeat ends the run after half of that; saves and start-up may take "
          "any time.")
      .per_process()
      .used_in_inference()
      .expert();
  d.add("restarts", o.restarts, integer_codec(0, 1'000'000))
      .unit("times")
      .help(
          "Automatic restarts of all processes of --devices, from the newest checkpoint, after one was lost. Set it "
          "for "
          "long unattended runs.")
      .per_process();
  d.add("listen", o.listen, text_codec("ADDRESS", true))
      .help(
          "Address at which rank 0 listens for ranks on other machines; without it none can connect. Choose a trusted "
          "network: the exchange has no authentication. The banner shows the address in use: some releases of "
          "LibTorch can only listen at all addresses of a machine.")
      .per_process()
      .used_in_inference();
}

template <template <typename> class Pick>
void declare_run(Declaration& d, RunOptionsOf<Pick>& o) {
  d.group("run", "Run directory and checkpoints");
  d.add("run-dir", o.run_dir, text_codec("DIR", false))
      .alias({"output", "output-dir"})
      .help(
          "Folder for all files of the run; the same command starts it, resumes it or finds it finished. Set it to "
          "keep "
          "runs apart; auto is runs/ and the name of the preset, the config files or the data set; {lr} becomes the "
          "value of --lr, and so on, {n} the next free number.")
      .per_process();
  d.add("resume", o.resume, text_codec("WHICH|DIR", false))
      .alias({"resume-from"})
      .help(
          "Checkpoint to start from; auto (the newest that verifies, if any), last, best, none, or a run or checkpoint "
          "directory, whose options and run-dir are taken where others are not given. Use a directory to continue a "
          "run elsewhere.")
      .per_process();
  d.add_switch("override-resume", o.override_resume)
      .help(
          "Resume although training options or data differ from those of the checkpoint. Use it when you changed them "
          "on purpose.")
      .per_process();
  d.add("save-every", o.save_every, interval_codec())
      .counted_alias("save-interval", "e", "never")
      .help("Time between checkpoints. Lower it on machines that may go away.")
      .per_process();
  d.add("report-every", o.report_every, interval_or_share_codec())
      .counted_alias("log-interval", "u", "never")
      .help(
          "Time between progress reports, also as a share of an epoch (0.1e). Raise it where thousands of lines are "
          "too many; each report waits once for the device.")
      .per_process();
  d.add("digest-every", o.digest_every, integer_codec(0, 1'000'000'000))
      .unit("updates")
      .help(
          "Updates between digests of the weights and of the images in metrics.jsonl, by which runs are compared; the "
          "first update has them, too; 0: none. Lower it to narrow down where two runs diverge.")
      .per_process()
      .expert();
  d.add("keep-last", o.keep_last, integer_codec(1, 1'000'000))
      .alias({"checkpoint-hist"})
      .unit("checkpoints")
      .help("Newest checkpoints that are kept, besides the best one. Raise it to go back further.")
      .per_process();
  d.add("keep-every", o.keep_every, epochs_or_updates_codec())
      .help(
          "Interval of checkpoints that are kept for good: 10e or 5000u. Set it to go back to any part of a run, as "
          "for cool-downs.")
      .per_process();
  d.add("average-last", o.average_last, integer_codec(0, 1000))
      .unit("checkpoints")
      .help(
          "Average the weights of this many of the last checkpoints of save-every when the run is finished, and "
          "evaluate "
          "the average beside best and last: checkpoints/average; 0: none. Use 5 or so with a rate that stays high.")
      .free_on_resume();
  d.add_switch("save-best", o.save_best)
      .help("Keep the checkpoint with the best eval-metric. Turn it off to save its disk space.")
      .per_process()
      .expert();
  d.add_switch("async-save", o.async_save)
      .help(
          "Write checkpoints while training continues, from a copy in host memory that stays. Turn it off where host "
          "memory is short.")
      .per_process()
      .expert();
  d.add_switch("space-check", o.space_check)
      .help("Refuse to start when the disk cannot hold the checkpoints. Turn it off where a quota is reported wrongly.")
      .per_process()
      .expert();
  d.add_switch("plan-check", o.plan_check)
      .help("Refuse to start when the planned memory exceeds what there is. Turn it off where the plan is wrong.")
      .per_process()
      .used_in_inference()
      .expert();
  d.add("profile", o.profile, interval_codec())
      .help(
          "Record the start of the run, as in 10u: a trace for chrome://tracing in run-dir/profile.json, and the time "
          "of each operator over a few updates in operators.csv. Use it to see where time goes.")
      .per_process();
  d.add("stop-signals", o.stop_signals, signals_codec())
      .takes_list()
      .help(
          "Signals that save and stop the run as TERM, INT and USR1 always do, such as USR2,HUP: also USR2, which else "
          "saves and continues. Set it to what your batch system sends.")
      .per_process();
  d.add("stop-exit-code", o.stop_exit_code, integer_codec(0, 255))
      .help("Exit code after a stop on request with a verified checkpoint. Set 143 for Kubeflow, 99 for Grid Engine.")
      .per_process()
      .expert();
  d.add_switch("tensorboard", o.tensorboard)
      .help("Write event files for TensorBoard below run-dir/tensorboard. Use it where you have TensorBoard.")
      .per_process();
  d.add_switch("report", o.report)
      .help(
          "Write run-dir/report.html when the run ends or stops. Use it to hand results on; a report can also be made "
          "at any time later.")
      .per_process();
}

void declare_log(Declaration& d, LogOptions& o) {
  d.group("log", "Logging");
  d.add("log-level", o.log_level,
        choice_codec<std::string>({{"debug", "debug"}, {"info", "info"}, {"warning", "warning"}, {"error", "error"}}))
      .help(
          "Least severe messages on the console; the run's train.log gets all. Set debug to see what was chosen and "
          "why.")
      .per_process()
      .used_in_inference()
      .used_in_pack();
  d.add_switch("quiet", o.quiet)
      .help("Only warnings, errors and the last line on the console. Use it in scripts.")
      .per_process()
      .used_in_inference()
      .used_in_pack();
  d.add("progress", o.progress, choice_codec<std::string>({{"bar", "bar"}, {"plain", "plain"}, {"off", "off"}}))
      .help(
          "bar: a live line with a bar on a terminal, else a line per report; plain: always lines; off: only the lines "
          "of each epoch. Use plain where a terminal is recorded; NO_COLOR=1 turns colour off.")
      .per_process()
      .used_in_pack();
  d.add("log-file", o.log_file, text_codec("FILE", true))
      .alias({"log"})
      .help("One more file for all messages; empty: none. Set it where logs are collected.")
      .per_process()
      .used_in_inference()
      .used_in_pack();
}

}  // namespace

template <typename AnyOptions>
void declare_process(Declaration& declaration, AnyOptions& options) {
  declare_precision(declaration, options.precision);
  declare_device(declaration, options.device);
  declare_run(declaration, options.run);
  declare_log(declaration, options.log);
}
template void declare_process(Declaration&, Options&);
template void declare_process(Declaration&, ResolvedOptions&);

}  // namespace stoker::config
