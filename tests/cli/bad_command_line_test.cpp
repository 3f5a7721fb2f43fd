// SPDX-License-Identifier: Apache-2.0
// Invalid command lines: refused before anything is read or written.
#include <gtest/gtest.h>

#include <filesystem>

#include "bad_input.h"
#include "exit_codes.h"
#include "tiny_data.h"

namespace stoker::cli {
namespace {

class BadCommandLine : public ::testing::TestWithParam<BadInput> {};

TEST_P(BadCommandLine, IsRefused) { expect_refused_before_the_run(GetParam()); }

/// In a folder that has photos.
std::function<Words(const Workplace&)> beside_photos(const Words& command_line) {
  return [command_line](const Workplace& work) {
    std::filesystem::create_directory(work / "photos");
    return command_line;
  };
}

/// With photos, an empty folder, and data, which can be trained on.
std::function<Words(const Workplace&)> beside_data(const Words& command_line) {
  return [command_line](const Workplace& work) {
    write_idx(work);
    return beside_photos(command_line)(work);
  };
}

const std::vector<BadInput>& bad_flags() {
  static const std::vector<BadInput> all = {
      {"NothingAtAll", words({}), kUsage, {"neither data nor a command is named", "train --data-dir photos"}},
      {"UnknownFlagWithTheNearestName",
       words({"--batchsize", "4"}),
       kUsage,
       {"--batchsize: unknown flag; did you mean --batch-size?", "hint: train --help-all lists every flag"}},
      {"EveryUnknownFlagAtOnce",
       words({"--epoch", "2", "--learning-rat", "1", "--widht=3", "--qqqq"}),
       kUsage,
       {"4 problems with the command line:", "--epoch: unknown flag; did you mean --epochs?",
        "--learning-rat: unknown flag; did you mean --learning-rate?", "--widht: unknown flag; did you mean --width?",
        "--qqqq: unknown flag"}},
      {"FlagWithEscapeSequence", words({"--\x1b[31mred"}), kUsage, {"unknown flag", "[31mred"}},
      {"FlagOfManyLetters", words({"--" + std::string(100'000, 'x')}), kUsage, {"unknown flag"}},
      {"StrayWord", words({"--epochs", "1", "two"}), kUsage, {"unexpected word \"two\""}},
      {"UnknownCommand", words({"evall", "run"}), kUsage, {"unknown command \"evall\"; did you mean eval?"}},
      {"UnknownCommandLikeNone",
       words({"xyzzy"}),
       kUsage,
       {"unknown command \"xyzzy\"", "commands: eval, predict", "without a command train trains"}},
      {"FolderBehindAnUnknownCommand",
       beside_photos({"xyzzy", "photos", "--epochs", "2"}),
       kUsage,
       {"unknown command \"xyzzy\"", "train --data-dir photos --epochs 2"}},
      {"FolderBehindAWordOfOthers",
       beside_photos({"tune", "photos", "--epochs", "2"}),
       kUsage,
       {"unknown command \"tune\"; train sweep", "train bench lr",
        "hint: train sweep sweeps/lr --over lr=0.1,0.03,0.01 --data-dir photos --epochs 2"}},
      {"FolderBehindACommand",
       beside_photos({"plan", "photos", "--epochs", "2"}),
       kUsage,
       {"unexpected word \"photos\"; write --data-dir photos", "train plan --data-dir photos --epochs 2"}},
      {"CommandAfterFlags", words({"--epochs", "1", "eval"}), kUsage, {"the command eval must be the first word"}},
      {"EvalWithoutRun", words({"eval"}), kUsage, {"missing RUN_OR_CHECKPOINT"}},
      {"PredictWithoutImages", words({"predict", "run"}), kUsage, {"missing INPUT"}},
      {"PredictWithoutARun",
       beside_photos({"predict", "--top-k", "2", "photos"}),
       kUsage,
       {"missing RUN_OR_CHECKPOINT: \"photos\" is an input; train runs lists runs",
        "hint: train predict --top-k 2 RUN_OR_CHECKPOINT photos\n"}},
      {"TrainingFlagInEval",
       words({"eval", "run", "--epochs", "3"}),
       kUsage,
       {"--epochs: an option of training, not of eval"}},
      {"FlagOfEvalInTraining", words({"--which", "best"}), kUsage, {"--which: a flag of train eval"}},
      {"UnknownChoiceOfCommandFlag",
       words({"eval", "run", "--which", "worst"}),
       kUsage,
       {"--which: \"worst\" is not accepted; write one of best and last"}},
  };
  return all;
}

const std::vector<BadInput>& bad_values() {
  static const std::vector<BadInput> all = {
      {"ValueOutOfRange",
       words({"--batch-size", "0"}),
       kUsage,
       {"--batch-size: 0 is out of range; accepted: 1 to 1048576"}},
      {"MinusOneNeverMeansAuto", words({"--num-workers", "-1"}), kUsage, {"--num-workers: -1 is out of range"}},
      {"MissingLastValue", words({"--epochs"}), kUsage, {"--epochs: no value given"}},
      {"MissingValueBeforeFlag", words({"--epochs", "--lr", "1"}), kUsage, {"--epochs: no value given"}},
      {"EmptyValue", words({"--epochs="}), kUsage, {"--epochs: no value given"}},
      {"WordForNumber", words({"--lr", "fast"}), kUsage, {"--lr: \"fast\" is not a decimal number"}},
      {"FractionForCount", words({"--epochs", "1.5"}), kUsage, {"--epochs: \"1.5\" is not a whole number"}},
      {"ExponentForCount", words({"--epochs", "1e3"}), kUsage, {"--epochs: \"1e3\" is not a whole number"}},
      {"NanLearningRate", words({"--lr", "nan"}), kUsage, {"--lr: \"nan\" is not a finite number"}},
      {"InfiniteLearningRate", words({"--lr", "inf"}), kUsage, {"--lr: \"inf\" is not a finite number"}},
      {"NumberTooLarge", words({"--seed", "99999999999999999999999"}), kUsage, {"--seed:", "is out of range"}},
      {"NumberTooLargeForDouble", words({"--lr", "1e999"}), kUsage, {"--lr: 1e999 is out of range"}},
      {"OctalLookingNumber", words({"--epochs", "010"}), kUsage, {"--epochs: \"010\" begins with 0", "write 10"}},
      {"WordForSwitch",
       words({"--tf32=maybe"}),
       kUsage,
       {"--tf32: \"maybe\" is not a switch value; write true or false"}},
      {"UnknownChoice", words({"--opt", "fastest"}), kUsage, {"--opt:", "sgd", "adamw"}},
      {"IntervalWithoutUnit",
       words({"--save-every", "10"}),
       kUsage,
       {"--save-every: \"10\" has no unit; accepted: 1e"}},
      {"DurationWithoutUnit",
       words({"--max-time", "600"}),
       kUsage,
       {"--max-time: \"600\" has no unit; accepted: 600s"}},
      {"UnknownKindOfDevice", words({"--device", "gpu"}), kUsage, {"--device:", "cpu", "cuda"}},
      {"UnknownPreset",
       words({"--preset", "fashion-mnits"}),
       kConfig,
       {"unknown preset fashion-mnits", "fashion_mnist"}},
  };
  return all;
}

const std::vector<BadInput>& foreign_words() {
  static const std::vector<BadInput> all = {
      {"FolderAsFirstWord",
       beside_photos({"photos", "--epochs", "3"}),
       kUsage,
       {"unknown command \"photos\"; write --data-dir photos", "hint: train --data-dir photos --epochs 3\n"}},
      {"AddressAsFirstWord",
       words({"https://x.org/photos.zip", "--epochs", "3"}),
       kUsage,
       {"https://x.org/photos.zip is an address; nothing is downloaded: run wget https://x.org/photos.zip && unzip "
        "photos.zip -d data, then name the folder",
        "hint: train --data-dir FOLDER --epochs 3\n"}},
      {"AddressOfWeights",
       beside_data({"--data-dir", "data", "--pretrained", "https://x.org/resnet18.pth"}),
       kNoInput,
       {"https://x.org/resnet18.pth is an address; weights are read from this machine",
        "run wget https://x.org/resnet18.pth, then --init-from FILE"}},
      {"PhotosWhereWeightsAreNamed",
       beside_data({"--data-dir", "data", "--pretrained", "photos"}),
       kNoInput,
       {"no weights that fit", "--data-dir photos --pretrained"}},
      {"OptionsOfUltralytics",
       beside_photos({"data=photos", "epochs=3"}),
       kUsage,
       {"hint: train --data-dir photos --epochs 3\n"}},
      {"ProjectAloneIsTheFolderOfTheRun",
       beside_photos({"--data-dir", "photos", "--project", "runs/x"}),
       kUsage,
       {"--project: unknown flag; write --run-dir runs/x", "hint: train --data-dir photos --run-dir runs/x\n"}},
      {"ProjectAndNameAreOneFolder",
       beside_photos({"--data-dir", "photos", "--project=runs/x", "--name", "first"}),
       kUsage,
       {"2 problems", "hint: train --data-dir photos --run-dir runs/x/first\n"}},
      {"NameBesideARunDirectory",
       beside_photos({"--data-dir", "photos", "--run-dir", "a", "name=b"}),
       kUsage,
       {"leave it out", "hint: train --data-dir photos --run-dir a\n"}},
      {"StepsOfWarmUp",
       beside_photos({"--data-dir", "photos", "--warmup-steps", "100"}),
       kUsage,
       {"--warmup-steps: unknown flag; leave it out: --warmup-epochs", "hint: train --data-dir photos\n"}},
      {"RatioOfWarmUp",
       beside_photos({"--data-dir", "photos", "--warmup-ratio", "0.1"}),
       kUsage,
       {"--warmup-ratio: unknown flag; leave it out: --warmup-epochs"}},
      {"PatienceOfOthers",
       beside_photos({"--data-dir", "photos", "--early-stopping-patience", "3"}),
       kUsage,
       {"write --patience 3", "hint: train --data-dir photos --patience 3\n"}},
      {"ShareOfBatches",
       beside_photos({"--data-dir", "photos", "--limit-train-batches", "0.1"}),
       kUsage,
       {"write --fraction 0.1", "hint: train --data-dir photos --fraction 0.1\n"}},
      {"NumberOfBatches",
       beside_photos({"--data-dir", "photos", "--limit-train-batches", "10"}),
       kUsage,
       {"leave it out: --fraction 0.1 trains on a share of the images"}},
      {"AnOptionOfTrainingAtRuns", words({"runs", "runs", "--no-amp"}), kUsage, {"--no-amp: an option of training"}},
      {"AnOptionOfTrainingAtExport", words({"export", "run", "--amp"}), kUsage, {"--amp: an option of training"}},
      {"ARunBehindAFlag",
       words({"eval", "--checkpoint", "runs/x", "--split", "val"}),
       kUsage,
       {"--checkpoint: a run is named without a flag; write runs/x", "hint: train eval runs/x --split val\n"}},
      {"ARunAsTheModelOfAnotherWord",
       words({"val", "--model", "runs/x"}),
       kUsage,
       {"did you mean eval?", "hint: train eval runs/x\n"}},
      {"UnknownNetworkBesideOtherMistakes",
       words({"--model", "resnet81", "--lr", "abc", "--foo", "3"}),
       kUsage,
       {"3 problems", "unknown model \"resnet81\"; did you mean resnet18?", "--foo: unknown flag", "--lr: \"abc\""}},
      {"ChannelsHeightAndWidth",
       beside_photos({"--data-dir", "photos", "--input-size", "3", "32", "32", "--epochs", "1"}),
       kUsage,
       {"--input-size: unknown flag; write --img-size 32", "hint: train --data-dir photos --img-size 32 --epochs 1\n"}},
      {"DetectionIsNotSupported",
       beside_photos({"detect", "train", "data=photos"}),
       kUsage,
       {"\"detect\": detection is not supported"}},
      {"WeightsWithoutAName", words({"--weights"}), kUsage, {"--weights: no value given"}},
  };
  return all;
}

/// The run is not there (66): what else is wrong is reported before it is looked for.
std::function<Words(const Workplace&)> beside_file_and_folder(const Words& command_line) {
  return [command_line](const Workplace& work) {
    std::filesystem::create_directory(work / "folder");
    work.write("file", "x");
    return command_line;
  };
}

const std::vector<BadInput>& late_mistakes() {
  static const std::vector<BadInput> all = {
      {"FewResamples", words({"eval", "nowhere", "--resamples", "39"}), kUsage, {"--resamples: 39 is too few"}},
      {"LogitsWithoutAFolder", words({"eval", "nowhere", "--logits"}), kUsage, {"add --output FOLDER"}},
      {"FeaturesBesideClasses",
       words({"predict", "nowhere", "a.jpg", "--features", "--top-k", "2"}),
       kUsage,
       {"--features"}},
      {"PredictionsAsNumpy", words({"predict", "nowhere", "a.jpg", "-o", "p.npy"}), kUsage, {"--output writes CSV"}},
      {"FileForEval",
       beside_file_and_folder({"eval", "nowhere", "-o", "file"}),
       kCannotCreate,
       {"cannot create folder file: a file is in the way", "hint: choose another folder"}},
      {"FileAboveTheFolderOfEval",
       beside_file_and_folder({"eval", "nowhere", "-o", "file/eval"}),
       kCannotCreate,
       {"cannot create folder file/eval: a file is in the way"}},
      {"FileForReplay",
       beside_file_and_folder({"inspect", "replay", "nowhere", "--update", "1", "-o", "file"}),
       kCannotCreate,
       {"cannot create folder file: a file is in the way"}},
      {"FileForHeatMaps",
       beside_file_and_folder({"predict", "nowhere", "a.jpg", "--explain", "file"}),
       kCannotCreate,
       {"cannot create folder file: a file is in the way"}},
      {"FolderForPredict",
       beside_file_and_folder({"predict", "nowhere", "a.jpg", "-o", "folder"}),
       kCannotCreate,
       {"cannot create folder: it is a folder", "hint: name a file in it: folder/NAME"}},
      {"FolderForExport",
       beside_file_and_folder({"export", "nowhere", "-o", "folder"}),
       kCannotCreate,
       {"cannot create folder: it is a folder", "hint: name a file in it: folder/NAME"}},
      {"NoFolderForExport",
       words({"export", "nowhere", "-o", "none/m.onnx"}),
       kCannotCreate,
       {"cannot create none/m.onnx: No such file or directory", "its folder is not there: make it"}},
      {"FolderForImport",
       beside_file_and_folder({"import", "nowhere", "-o", "folder"}),
       kCannotCreate,
       {"cannot create folder: it is a folder"}},
      {"FolderForPreview",
       beside_file_and_folder({"preview", "--data-dir", "nowhere", "-o", "folder"}),
       kCannotCreate,
       {"cannot create folder: it is a folder"}},
      {"FolderForAudit",
       beside_file_and_folder({"audit", "nowhere", "-o", "folder"}),
       kCannotCreate,
       {"cannot create folder: it is a folder"}},
      {"FolderForCheck",
       beside_file_and_folder({"check", "-o", "folder"}),
       kCannotCreate,
       {"cannot create folder: it is a folder"}},
      {"FolderForRuns",
       beside_file_and_folder({"runs", "nowhere", "--html", "-o", "folder"}),
       kCannotCreate,
       {"cannot create folder: it is a folder"}},
      {"FolderForReceipt",
       beside_file_and_folder({"inspect", "verify", "nowhere", "--receipt", "folder"}),
       kCannotCreate,
       {"cannot create folder: it is a folder"}},
      {"NoTeacher",
       words({"--data-dir", "nowhere", "--teacher", "none"}),
       kNoInput,
       {"no checkpoint in none", "name a run directory"}},
  };
  return all;
}

INSTANTIATE_TEST_SUITE_P(LateMistakes, BadCommandLine, ::testing::ValuesIn(late_mistakes()), name_of);
INSTANTIATE_TEST_SUITE_P(ForeignWords, BadCommandLine, ::testing::ValuesIn(foreign_words()), name_of);
INSTANTIATE_TEST_SUITE_P(Flags, BadCommandLine, ::testing::ValuesIn(bad_flags()), name_of);
INSTANTIATE_TEST_SUITE_P(Values, BadCommandLine, ::testing::ValuesIn(bad_values()), name_of);

}  // namespace
}  // namespace stoker::cli
