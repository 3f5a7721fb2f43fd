// SPDX-License-Identifier: Apache-2.0
// Pickles that would run code when Python loads them, ask for memory that they have no right to, or are damaged: each
// is refused, with the opcode or the name that it is refused for.
#include <gtest/gtest.h>

#include "tests/weights/file/refusal.h"

namespace stoker::weights {
namespace {

using fixtures::little_endian;
using fixtures::MadePickle;
using fixtures::two_numbers;

struct BadPickle {
  const char* name;
  std::string pickle;
  const char* reason;
};

/// Calls module.name with a text.
std::string call(const std::string& module, const std::string& name) {
  return MadePickle().global(module, name).op("(").text("echo pwned").op("tR").done();
}

/// {"a": value} for opcodes that make the value.
std::string value(const std::string& opcodes) { return MadePickle().op("}").text("a").op(opcodes).op("s").done(); }

std::string tensor_call(const std::string& arguments) {
  return value(MadePickle().global("torch._utils", "_rebuild_tensor_v2").op(arguments).op("R").bytes.substr(2));
}

/// A storage, and the arguments behind it.
std::string storage(const std::string& key = "0", int64_t count = 2, const std::string& tag = "storage") {
  return MadePickle()
      .op("(")
      .text(tag)
      .global("torch", "FloatStorage")
      .text(key)
      .text("cpu")
      .integer(count)
      .op("tQ")
      .bytes.substr(2);
}

std::string arguments(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides, int64_t offset = 0,
                      const std::string& rest = "\x89N", const std::string& from = storage()) {
  return MadePickle().op("(").op(from).integer(offset).tuple(shape).tuple(strides).op(rest).op("t").bytes.substr(2);
}

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

/// Pairs of pairs of pairs ...: of 2^60 entries when written out.
std::string billion_laughs() {
  std::string ops = ")";
  for (int i = 0; i < 60; ++i) ops += std::string("q") + static_cast<char>(i) + "h" + static_cast<char>(i) + "\x86";
  return value(ops);
}

const std::vector<BadPickle>& bad_pickles() {
  static const std::vector<BadPickle> all = {
      // Code
      {"OsSystem", call("os", "system"), "it names os.system, which is not part of a state dict"},
      {"PosixSystem", call("posix", "system"), "it names posix.system"},
      {"NtSystem", call("nt", "system"), "it names nt.system"},
      {"Subprocess", call("subprocess", "Popen"), "it names subprocess.Popen"},
      {"Eval", call("builtins", "eval"), "it names builtins.eval"},
      {"Exec", call("builtins", "exec"), "it names builtins.exec"},
      {"Import", call("builtins", "__import__"), "it names builtins.__import__"},
      {"GetattrOfPython2", call("__builtin__", "getattr"), "it names __builtin__.getattr"},
      {"Runpy", call("runpy", "_run_code"), "it names runpy._run_code"},
      {"Webbrowser", call("webbrowser", "open"), "it names webbrowser.open"},
      {"OperatorAttrgetter", call("operator", "attrgetter"), "it names operator.attrgetter"},
      {"PickleInPickle", call("_pickle", "loads"), "it names _pickle.loads"},
      {"TorchLoad", call("torch", "load"), "it names torch.load"},
      {"LoadFromBytes", call("torch.storage", "_load_from_bytes"), "it names torch.storage._load_from_bytes"},
      {"TorchHub", call("torch.hub", "load_state_dict_from_url"), "it names torch.hub.load_state_dict_from_url"},
      {"TorchJit", call("torch.jit", "load"), "it names torch.jit.load"},
      {"NumpyReconstruct", call("numpy.core.multiarray", "_reconstruct"),
       "it names numpy.core.multiarray._reconstruct"},
      {"WholeModule", call("torchvision.models.resnet", "ResNet"), "it names torchvision.models.resnet.ResNet"},
      {"Namespace", call("argparse", "Namespace"), "it names argparse.Namespace"},
      {"AttributeOfAGoodName", call("collections", "OrderedDict.fromkeys"),
       "it names collections.OrderedDict.fromkeys"},
      {"GoodNameOfABadModule", call("evil", "OrderedDict"), "it names evil.OrderedDict"},
      {"QuantisedTensor", call("torch._utils", "_rebuild_qtensor"), "it names torch._utils._rebuild_qtensor"},
      {"StackGlobal", MadePickle().text("os").text("system").op("\x93(").text("id").op("tR").done(),
       "it names os.system"},
      {"StackGlobalOfNumbers", MadePickle().integer(1).integer(2).op("\x93").done(),
       "the name of a global is not text"},
      {"Inst", MadePickle().op("(ios\nsystem\n").done(), "it names os.system, which is not part of a state dict"},
      {"Obj", MadePickle().op("(").global("collections", "OrderedDict").op("o").done(),
       "no tensor is in its dictionaries"},
      {"Newobj", MadePickle().global("collections", "OrderedDict").op(")\x81").done(),
       "no tensor is in its dictionaries"},
      {"NewobjEx", MadePickle().global("collections", "OrderedDict").op(")}\x92").done(),
       "no tensor is in its dictionaries"},
      {"Extension", MadePickle().op("\x82\x01").done(), "opcode EXT1 is not part"},
      {"TextualPersistentId", MadePickle().op("Pevil\n").done(), "opcode PERSID is not part"},
      {"EscapedString", MadePickle().op("S'\\x41'\n").done(), "opcode STRING is not part"},
      {"CallOfAText", value(MadePickle().text("os.system").op(")R").bytes.substr(2)),
       "it calls a function that no state dict needs"},
      {"CallOfAStorageType", value(MadePickle().global("torch", "FloatStorage").op(")R").bytes.substr(2)),
       "it calls a type of numbers"},
      {"CallWithoutATuple", value(MadePickle().global("torch", "Size").op("]R").bytes.substr(2)),
       "it calls a function that no state dict needs"},
      {"StateOfATuple", value(")}b"), "it sets the state of an object that is not a dictionary"},
      {"StateOfATensor", tensor_call(arguments({2}, {1}) + "R}b"),
       "it sets the state of an object that is not a dictionary"},
      {"HooksThatAreThere", tensor_call(arguments({2}, {1}, 0, "\x89}K\x01K\x01s")), "is called with other arguments"},
      {"ConjugatedTensor", tensor_call(arguments({2}, {1}, 0, "\x89N}K\x01K\x01s")), "is called with other arguments"},
      {"PersistentModule", tensor_call(arguments({2}, {1}, 0, "\x89N", storage("0", 2, "module"))),
       "a storage is called with other arguments"},
      {"PersistentText", value(MadePickle().text("0").op("Q").bytes.substr(2)), "a persistent id is not a tuple"},
      // Memory
      {"TextOf4Gigabytes", MadePickle().op("X\xFF\xFF\xFF\xFF").done(), "it is cut short"},
      {"TextOf8Exabytes", MadePickle().op("\x8d" + std::string(8, '\x7F')).done(), "it is cut short"},
      {"MemoAtTheEnd", MadePickle().op("Nr\xFF\xFF\xFF\xFF").done(), "its memo is too large"},
      {"MillionsOfValues", MadePickle().op(repeated("N", 1100000)).done(), "it has more than 524288 values"},
      {"LongOf200Bytes", MadePickle().op("\x8a\xC8" + std::string(200, '\1')).done(),
       "it holds no dictionary, so no state dict"},
      {"LongListInManyDictionaries",
       MadePickle()
           .op("](" + repeated("]", 400000) + "eq")
           .op(std::string(1, '\0'))
           .op("(" + repeated(std::string("h\0", 2), 2500000) + "e")
           .op("(" + repeated(std::string("h\0", 2), 2500000) + "e")
           .done(),
       "its containers have more than"},
      {"PairsOfPairsOfPairs", billion_laughs(), "no tensor is in its dictionaries"},
      {"ShapeThatWrapsAround", tensor_call(arguments({INT64_MAX, INT64_MAX}, {1, 1})), "has a shape that is too large"},
      {"BroadcastView", tensor_call(arguments({1 << 30}, {0})), "tensor a repeats its storage"},
      {"StorageThatWrapsAround", tensor_call(arguments({2}, {1}, 0, "\x89N", storage("0", INT64_MAX))),
       "has a storage that is too large"},
      {"TooManySides", tensor_call(arguments(std::vector<int64_t>(40, 1), std::vector<int64_t>(40, 1))),
       "is called with other arguments"},
      // Damage
      {"ViewBeyondItsStorage", tensor_call(arguments({2}, {1}, 1)), "tensor a reaches to number 2 of a storage of 2"},
      {"StrideBeyondItsStorage", tensor_call(arguments({2}, {5})), "tensor a reaches to number 5 of a storage of 2"},
      {"NegativeStride", tensor_call(arguments({2}, {-1})), "is called with other arguments"},
      {"NegativeOffset", tensor_call(arguments({1}, {1}, -1)), "is called with other arguments"},
      {"MoreStridesThanSides", tensor_call(arguments({2}, {1, 1})), "is called with other arguments"},
      {"MissingStorage", tensor_call(arguments({2}, {1}, 0, "\x89N", storage("1"))), "its storage data/1 is missing"},
      {"StorageOfAnotherSize", tensor_call(arguments({2}, {1}, 0, "\x89N", storage("0", 3))),
       "its storage data/0 has 8 bytes instead of 12"},
      {"StorageOutsideOfItsFolder", tensor_call(arguments({2}, {1}, 0, "\x89N", storage("../data.pkl"))),
       "its storage data/../data.pkl is missing"},
      {"TensorOfNoStorage", tensor_call(arguments({2}, {1}, 0, "\x89N", "N")), "is called with other arguments"},
      {"NothingInTheMemo", MadePickle().op("h\x07").done(), "its memo has nothing at 7"},
      {"EmptyStack", MadePickle().op("t").done(), "there is no mark"},
      {"StopOnNothing", MadePickle().done(), "it ends with more or less than one value"},
      {"StopOnTwoValues", MadePickle().op("NN").done(), "it ends with more or less than one value"},
      {"AppendToNothing", MadePickle().op("Na").done(), "its stack is empty"},
      {"AppendToADictionary", MadePickle().op("}Na").done(), "it appends to something that is not a list"},
      {"ItemsOfAList", MadePickle().op("]NNs").done(), "it sets items of something that is not a dictionary"},
      {"OddItems", MadePickle().op("}(Nu").done(), "it sets items of something that is not a dictionary"},
      {"NoEnd", MadePickle().op("}").bytes, "it is cut short"},
      {"NothingAtAll", "", "it is cut short"},
      {"NameWithoutAnEnd", MadePickle().op("c" + std::string(1000, 'a')).bytes, "a name has no end"},
      {"NoOpcode", MadePickle().op("\xFE").done(), "byte 0xfe is not an opcode"},
      {"NewProtocol", "\x80\x09.", "protocol 9 is none of 2 to 5"},
      {"OldProtocol", "(dp0\n.", "opcode PUT is not part"},
      {"List", MadePickle().op("]").done(), "it holds no dictionary, so no state dict"},
      {"OneTensor", MadePickle().tensor(two_numbers()).done(), "it holds one tensor, not a state dict"},
      {"NoTensors", MadePickle().op("}").text("epoch").integer(3).op("s").done(), "no tensor is in its dictionaries"},
      {"DictionaryInItself", MadePickle().op("}q").op(std::string(1, '\0')).text("a").op(std::string("h\0s", 3)).done(),
       "no tensor is in its dictionaries"},
  };
  return all;
}

TEST(BadPickleTest, IsRefusedWithAReason) {
  for (const BadPickle& bad : bad_pickles()) {
    const std::string message = fixtures::refusal(fixtures::zip_around(bad.pickle));
    EXPECT_NE(message.find(bad.reason), std::string::npos) << bad.name << " was " << message;
    EXPECT_EQ(message.rfind("w.pth: ", 0), 0u) << bad.name;
  }
}

TEST(BadPickleTest, IsRefusedInTheOlderLayoutAsWell) {
  for (const char* global : {"os", "builtins"}) {
    const std::string message = fixtures::refusal(fixtures::torch_legacy_file(call(global, "eval"), {two_numbers()}));
    EXPECT_NE(message.find("it names " + std::string(global) + ".eval"), std::string::npos) << message;
  }
}

/// {"what": <opcodes>, "state_dict": {"a": two numbers}}
std::string beside_a_tensor(const std::string& opcodes) {
  const std::string state = fixtures::state_dict_pickle({two_numbers()});
  return MadePickle()
      .op("}")
      .text("what")
      .op(opcodes + "s")
      .text("state_dict")
      .op(state.substr(2, state.size() - 3) + "s")
      .done();
}

TEST(BadPickleTest, WhatStandsBesideTensorsIsPassedOverAndNamed) {
  const auto global = [](const char* module, const char* name) {
    return MadePickle().global(module, name).bytes.substr(2);
  };
  const auto text = [](const char* words) { return MadePickle().text(words).bytes.substr(2); };
  const std::string storage_of_complex =
      "(" + text("storage") + global("torch", "ComplexFloatStorage") + text("7") + text("cpu") + "K\x02tQ";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {global("argparse", "Namespace") + ")\x81}" + text("lr") + "G" + std::string(8, '\0') + "sb",
       "argparse.Namespace"},
      {global("argparse", "Namespace") + ")R}b", "argparse.Namespace"},
      {global("numpy.core.multiarray", "scalar") + global("numpy", "dtype") + "(" + text("f8") +
           std::string("K\0K\1tR(K\3tb", 11) + "C\x08" + std::string(8, '\0') + "\x86R",
       "numpy.core.multiarray.scalar"},
      {global("collections", "Counter") + "}K\x1eK\x01s\x85R", "collections.Counter"},
      {global("collections", "defaultdict") + global("builtins", "list") + "\x85R(K\1K\2u", "collections.defaultdict"},
      {global("__main__", "Thing") + ")}\x92", "__main__.Thing"},
      {"(" + global("__main__", "Thing") + "K\1o", "__main__.Thing"},
      {"(K\1i__main__\nThing\n", "__main__.Thing"},
      {global("torch._utils", "_rebuild_tensor_v2") + "(" + storage_of_complex + std::string("K\0)", 3) + ")\x89NtR",
       "torch.ComplexFloatStorage"},
      {global("os", "system") + text("touch pwned") + "\x85R", "os.system"},
      {global("omegaconf.dictconfig", "DictConfig") + ")\x81}b", "omegaconf.dictconfig.DictConfig"},
      {"\x8f(K\1K\2\x90", ""},
      {"(K\1K\2\x91", ""},
      {"\x8a\x0a" + std::string(10, '\1'), ""},
  };
  for (const auto& [opcodes, name] : cases) {
    const WeightFile file = fixtures::opened(fixtures::zip_around(beside_a_tensor(opcodes)));
    ASSERT_EQ(file.tensors.size(), 1u) << name;
    EXPECT_EQ(file.passed_over.empty(), name.empty());
    EXPECT_EQ(name.empty() ? "" : file.passed_over.front(), name);
  }
}

TEST(BadPickleTest, NoPrefixOfAGoodOneIsAccepted) {
  const std::string good = fixtures::state_dict_pickle({two_numbers()});
  EXPECT_EQ(fixtures::refusal(fixtures::zip_around(good)), "accepted");
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_NE(fixtures::refusal(fixtures::zip_around(good.substr(0, size))), "accepted") << size;
  }
}

}  // namespace
}  // namespace stoker::weights
