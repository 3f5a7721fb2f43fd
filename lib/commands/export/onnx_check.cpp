// SPDX-License-Identifier: Apache-2.0
#include "commands/export/onnx_check.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <sstream>

#include "core/error.h"
#include "core/format.h"
#include "core/system/child_process.h"
#include "core/system/file.h"
#include "engine/checkpoint/safetensors.h"

namespace stoker::train {
namespace {

using core::Error;
using core::ErrorKind;

constexpr const char* kChecker = "stoker-check-onnx";
constexpr uint64_t kMaxAnswers = uint64_t{1} << 32;

/// Removed with all that is in it.
class Scratch {
 public:
  Scratch() {
    const std::string plain = core::temporary_folder() + "/stoker-check";
    core::remove_temporaries_of(plain);  // a killed process leaves them behind
    path_ = core::format("{}.tmp-{}", plain, ::getpid());
    if (::mkdir(path_.c_str(), 0700) != 0) throw core::errno_error(errno, "make", path_, ErrorKind::cannot_create);
  }
  ~Scratch() { core::remove_tree(path_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string operator/(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace

OnnxAnswers run_onnx(const std::string& path, const torch::Tensor& inputs) {
  const std::string program = core::find_beside_program(kChecker, "../libexec/stoker");
  if (program.empty()) {
    throw Error(ErrorKind::unavailable, core::format("--check: {} is not installed beside this program", kChecker),
                "build with OpenCV's dnn module (libopencv-dnn-dev), or leave --check out");
  }
  const Scratch scratch;
  const std::string questions = scratch / "inputs.safetensors", answers = scratch / "answers";
  engine::write_safetensors(questions, {{"inputs", inputs}});
  const int code = core::run_child({{program, path, questions, answers}});
  if (code != 0) {
    throw Error(ErrorKind::config, core::format("--check: {} could not run {}", kChecker, core::printable(path)),
                "its messages are above; another reader may support more operators");
  }
  const std::string bytes = core::read_file(answers, kMaxAnswers);
  const size_t line_end = bytes.find('\n');
  OnnxAnswers result;
  std::istringstream line(bytes.substr(0, line_end));
  int64_t rows = 0, columns = 0;
  std::string name, version, batches;
  line >> rows >> columns >> name >> version >> batches;
  result.takes_batches = batches == "batches";
  result.reader = name + " " + version;
  const bool is_whole = line_end != std::string::npos && rows == inputs.size(0) && columns > 0 &&
                        bytes.size() - line_end - 1 == static_cast<size_t>(rows * columns) * sizeof(float);
  if (!is_whole) throw Error(ErrorKind::bug, core::format("--check: {} gave half an answer", kChecker));
  result.outputs = torch::empty({rows, columns}, at::kFloat);
  std::copy(bytes.begin() + static_cast<std::ptrdiff_t>(line_end) + 1, bytes.end(),
            static_cast<char*>(result.outputs.data_ptr()));
  return result;
}

}  // namespace stoker::train
