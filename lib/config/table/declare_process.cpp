// SPDX-License-Identifier: Apache-2.0
// Rows of the groups precision, device, run and log. Nothing here knows how options are read or shown.
#include <limits>

#include "config/table/declaration.h"

namespace stoker::config {
namespace {

template <template <typename> class Pick>
void declare_precision(Declaration& d, PrecisionOptionsOf<Pick>& o) {
  d.group("precision", "Numbers on the device");
  d.add_switch("amp", o.amp)
      .alias({"use-amp"})
      .help(
          "Automatic mixed precision: convolutions and matrix products in amp-dtype, weights in float32. auto "
          "is on where the device computes bfloat16 natively and, on a CPU, the network trains faster with it, which "
          "is tried at the start.")
      .used_in_inference();
  d.add("amp-dtype", o.amp_dtype,
        choice_codec<AmpDtype>({{"float16", AmpDtype::float16}, {"bfloat16", AmpDtype::bfloat16}}))
      .help("auto is bfloat16 where the device computes it natively and on the CPU, else float16.")
      .used_in_inference();
  d.add_shorthand("fp16", "amp with float16.", {{"true", {{"amp", "true"}, {"amp-dtype", "float16"}}}});
  d.add_shorthand("bf16", "amp with bfloat16.", {{"true", {{"amp", "true"}, {"amp-dtype", "bfloat16"}}}});
  d.add_shorthand("precision", "amp and its type in one word.",
                  {{"32", {{"amp", "false"}}},
                   {"16-mixed", {{"amp", "true"}, {"amp-dtype", "float16"}}},
                   {"bf16-mixed", {{"amp", "true"}, {"amp-dtype", "bfloat16"}}}})
      .is_written_for_gpus = true;
  d.add_switch("channels-last", o.channels_last)
      .help(
          "Keep images as NHWC in memory; auto: on a CPU, and on CUDA with amp or tf32; a CPU without AVX2 or oneDNN "
          "tries both at the start.")
      .used_in_inference();
  d.add_switch("tf32", o.tf32)
      .help("Let CUDA multiply float32 with 10-bit mantissas (TensorFloat-32); auto: on CUDA.")
      .used_in_inference();
  d.add("prove-backend", o.prove_backend,
        choice_codec<ProveBackend>(
            {{"auto", ProveBackend::automatic}, {"full", ProveBackend::full}, {"off", ProveBackend::off}}))
      .help(
          "Check before the first update that libraries compute each operation of the network correctly on this "
          "machine: on random numbers, in a process of its own, against plain loops. What is wrong is computed in "
          "another way, else exit code 83. auto compares a sample and remembers what was proven; full compares every "
          "element again, which takes minutes; off checks nothing, which is recorded.")
      .per_process()
      .used_in_inference();
  d.add("init-scale", o.init_scale, number_codec({1, 1e30}))
      .help("float16: loss scale at the start; halved whenever gradients overflow.");
  d.add("scale-growth-interval", o.scale_growth_interval, integer_codec(1, 1'000'000'000))
      .unit("updates")
      .help("float16: updates without overflow until the loss scale doubles.");
  d.add("min-scale", o.min_scale, number_codec({0, 1e30}))
      .alias({"min-loss-scale"})
      .help("float16: a loss scale below it ends the run with exit code 80.")
      .free_on_resume();
  d.add("max-skipped", o.max_skipped, integer_codec(0, 1'000'000'000))
      .unit("updates")
      .help("float16: so many updates skipped in a row end the run with exit code 80; 0: no limit.")
      .free_on_resume();
}

template <template <typename> class Pick>
void declare_device(Declaration& d, DeviceOptionsOf<Pick>& o) {
  d.group("device", "Where it runs");
  d.add("device", o.device, device_codec())
      .alias({"d"})
      .help("auto is cuda:0 where there is one, else cpu. A device that is asked for and missing is an error.")
      .per_process()
      .used_in_inference();
  std::vector<std::pair<std::string, Shorthand::Values>> gpus = {{"0", {{"device", "cpu"}}},
                                                                 {"1", {{"device", "cuda"}}}};
  for (int count = 2; count <= 8; ++count) {
    const std::string text = std::to_string(count);
    gpus.push_back({text, {{"device", "cuda"}, {"devices", text}}});
  }
  d.add_shorthand("gpus", "Number of GPUs: 0 is device cpu, 1 is device cuda, 2 is device cuda with devices 2.", gpus);
  d.add("threads", o.threads, integer_codec(1, 1024))
      .unit("threads")
      .help(
          "CPU threads inside one operation; auto is the number of CPUs this process may use, and 1 where there are "
          "several "
          "replicas, so that bits do not depend on the machine.")
      .per_process()
      .used_in_inference();
  d.add("lanes", o.lanes, integer_codec(1, 256))
      .unit("threads")
      .help(
          "Replicas that a process computes at the same time on a CPU, each on a thread, which share the weights; auto "
          "is "
          "the number of CPUs it may use, but no more than its replicas. Bits do not depend on it.")
      .per_process();
  d.add("devices", o.devices, devices_codec())
      .takes_list()
      .alias({"num-devices"})
      .help(
          "Processes on this machine that work together, each on a GPU of its own, or all on the CPU: training deals "
          "replicas to them, eval and predict batches. A list names the GPUs: 0,2 are two processes on cuda:0 and "
          "cuda:2 (and 2, with its comma, is one on cuda:2). They end with the bits of one process on such a device, "
          "and a resume may have others.")
      .per_process()
      .used_in_inference();
  d.add("exchange", o.exchange, choice_codec<Exchange>({{"exact", Exchange::exact}, {"fast", Exchange::fast}}))
      .before_it_existed("exact")
      .help(
          "How processes add their gradients: exact, in a tree over replicas, so that bits do not depend on the number "
          "of processes; fast, in the order of the transport's own all-reduce, which depends on it.");
  d.add_switch("overlap-exchange", o.overlap_exchange)
      .help(
          "Exchange gradients while the backward pass still computes others. Bits do not depend on it. Without effect "
          "with grad-checkpointing.")
      .per_process();
  d.add("graphs", o.graphs, choice_codec<Graphs>({{"on", Graphs::on}, {"off", Graphs::off}}))
      .help(
          "Record forward, loss and backward of full batches as a CUDA graph, which one launch does again. Bits do not "
          "depend on it. auto tries it where launching is found to hold the device up, and keeps it where updates "
          "become shorter. Needs CUDA, LibTorch 2.1 or newer and one replica; not with grad-checkpointing. It has not "
          "run "
          "on a card yet.")
      .per_process();
  d.add("exchange-timeout", o.exchange_timeout_seconds, duration_codec())
      .help(
          "Time that processes that work together wait for one of them in an update before the run ends with 76. A "
          "process that gives no sign of life ends it after half of that; saves and start-up may take any time.")
      .per_process()
      .used_in_inference();
  d.add("restarts", o.restarts, integer_codec(0, 1'000'000))
      .unit("times")
      .help(
          "How often all processes that --devices starts are started again, from the newest checkpoint, after one of "
          "them was lost.")
      .per_process();
  d.add("listen", o.listen, text_codec("ADDRESS", true))
      .help(
          "Address of this network at which rank 0 waits for ranks on other machines, which nothing else makes it do: "
          "the exchange has no authentication. The first screen says where it listens: some releases of LibTorch can "
          "only listen at all addresses of a machine.")
      .per_process()
      .used_in_inference();
}

template <template <typename> class Pick>
void declare_run(Declaration& d, RunOptionsOf<Pick>& o) {
  d.group("run", "Run directory and checkpoints");
  d.add("run-dir", o.run_dir, text_codec("DIR", false))
      .alias({"output", "output-dir"})
      .help(
          "Where everything is written; the same command starts, resumes or finds the run finished. "
          "auto is runs/ and the name of the preset, the config files or the data set. For sweeps: {lr} stands for the "
          "value of --lr, and so on; {n} for the next free number, so that each start is a new run.")
      .per_process();
  d.add("resume", o.resume, text_codec("WHAT", false))
      .alias({"resume-from"})
      .help(
          "auto (the newest checkpoint that verifies, if any), last, best, none, or a run or checkpoint directory: its "
          "options and run-dir are taken where others are not given.")
      .per_process();
  d.add_switch("override-resume", o.override_resume)
      .help("Resume although training options or data differ from those of the checkpoint.")
      .per_process();
  d.add("save-every", o.save_every, interval_codec())
      .alias({"save-interval"})
      .help("Time between checkpoints.")
      .per_process();
  d.add("report-every", o.report_every, interval_or_share_codec())
      .counted_alias("log-interval")
      .help("Time between progress reports, also as a share of an epoch (0.1e); each costs one wait for the device.")
      .per_process();
  d.add("digest-every", o.digest_every, integer_codec(0, 1'000'000'000))
      .unit("updates")
      .help(
          "Updates between digests of the weights and of the images in metrics.jsonl, by which train inspect diff and "
          "train "
          "verify compare; the first update has them, too. 0: none.")
      .per_process();
  d.add("keep-last", o.keep_last, integer_codec(1, 1'000'000))
      .alias({"checkpoint-hist"})
      .unit("checkpoints")
      .help("Newest checkpoints that are kept, besides the best one.")
      .per_process();
  d.add_switch("save-best", o.save_best).help("Keep the checkpoint with the best eval-metric.").per_process();
  d.add_switch("async-save", o.async_save)
      .help("Training goes on while a checkpoint is written, from a copy in host memory that stays.")
      .per_process();
  d.add_switch("space-check", o.space_check)
      .help("Refuse to start when the disk cannot hold the checkpoints.")
      .per_process();
  d.add_switch("plan-check", o.plan_check)
      .help("Refuse to start when the plan says that memory cannot hold the run.")
      .per_process()
      .used_in_inference();
  d.add("profile", o.profile, interval_codec())
      .help(
          "Record the start of the run, as in 10u: a trace for chrome://tracing in run-dir/profile.json, and the time "
          "of each operator over a few updates in operators.csv.")
      .per_process();
  d.add("stop-exit-code", o.stop_exit_code, integer_codec(0, 255))
      .help(
          "Exit code after a stop on request with a verified checkpoint (143 for Kubeflow, 99 for Grid "
          "Engine).")
      .per_process();
  d.add_switch("tensorboard", o.tensorboard)
      .help("Write event files for TensorBoard below run-dir/tensorboard.")
      .per_process();
  d.add_switch("report", o.report)
      .help("Write run-dir/report.html when the run ends or stops; train runs --html does so at any time.")
      .per_process();
}

void declare_log(Declaration& d, LogOptions& o) {
  d.group("log", "What is said");
  d.add("log-level", o.log_level,
        choice_codec<std::string>({{"debug", "debug"}, {"info", "info"}, {"warning", "warning"}, {"error", "error"}}))
      .help("Least severe messages on the console; the run's train.log gets all.")
      .per_process()
      .used_in_inference()
      .used_in_pack();
  d.add_switch("quiet", o.quiet)
      .help("Only warnings, errors and the last line on the console.")
      .per_process()
      .used_in_inference()
      .used_in_pack();
  d.add("log-file", o.log_file, text_codec("FILE", true))
      .alias({"log"})
      .help("One more file for all messages; empty: none.")
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
