// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "core/system/stop_signal.h"
#include "data/open_datasets.h"
#include "data/source.h"
#include "made_data.h"

namespace stoker::data {
namespace {

config::DataOptions options_for(const TempFolder& folder) {
  config::DataOptions options;
  options.data_dir = folder.path();
  return options;
}

Bytes tiny_image() { return png_of({1, 2, 3}, 1, 1, 3); }

void write_images(const TempFolder& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names) folder.write(name, tiny_image());
}

std::vector<std::string> names_of(const Source& source) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < source.size(); ++i) names.push_back(source.relative_name(i));
  return names;
}

bool has_note(const Datasets& datasets, const std::string& text) {
  for (const std::string& note : datasets.notes) {
    if (note.find(text) != std::string::npos) return true;
  }
  return false;
}

TEST(FolderLayoutTest, FoldersAreClassesInBytewiseOrder) {
  const TempFolder folder;
  write_images(folder, {"train/dog/b.png", "train/dog/a.jpg", "train/Cat/deep/er/x.webp", "train/Cat/1.bmp",
                        "val/dog/1.png", "val/Cat/1.png"});
  const Datasets datasets = open_datasets(options_for(folder));
  EXPECT_EQ(datasets.train->class_names(), std::vector<std::string>({"Cat", "dog"}));
  EXPECT_EQ(names_of(*datasets.train),
            std::vector<std::string>({"Cat/1.bmp", "Cat/deep/er/x.webp", "dog/a.jpg", "dog/b.png"}));
  EXPECT_EQ(datasets.train->label(1), 0);
  EXPECT_EQ(datasets.train->label(2), 1);
  EXPECT_EQ(datasets.train->name(2), folder / "train/dog/a.jpg");
  EXPECT_EQ(datasets.val->size(), 2);
  EXPECT_TRUE(has_note(datasets, "validation split: 'val'"));
  std::vector<uint8_t> buffer;
  SampleContent content;
  EXPECT_EQ(datasets.train->read(0, buffer, content), "");
  EXPECT_FALSE(content.is_pixels());
  EXPECT_EQ(Bytes(content.bytes, content.bytes + content.size), tiny_image());
}

TEST(FolderLayoutTest, TheFingerprintIsOfNamesSizesAndLabelsAndNotOfThePlace) {
  const TempFolder first, second;
  for (const TempFolder* folder : {&first, &second}) {
    write_images(*folder, {"train/a/1.png", "train/b/1.png", "val/a/1.png", "val/b/1.png"});
  }
  const std::string fingerprint = open_datasets(options_for(first)).train->fingerprint();
  EXPECT_EQ(open_datasets(options_for(second)).train->fingerprint(), fingerprint);
  second.write("train/a/1.png", Bytes(50));
  EXPECT_NE(open_datasets(options_for(second)).train->fingerprint(), fingerprint);
  second.write("train/a/1.png", tiny_image());
  EXPECT_EQ(open_datasets(options_for(second)).train->fingerprint(), fingerprint);
  write_images(second, {"train/a/2.png"});
  EXPECT_NE(open_datasets(options_for(second)).train->fingerprint(), fingerprint);
}

TEST(FolderLayoutTest, WhatIsNoImageIsSkippedWithACountedNote) {
  const TempFolder folder;
  write_images(folder, {"train/a/1.png", "train/b/no_extension", "train/b/1.PNG", "val/a/1.png", "val/b/1.png"});
  for (const char* const name : {"train/a/readme.txt", "train/a/labels.json", "train/b/Thumbs.db", "train/b/.DS_Store",
                                 "train/stray.png", "train/.hidden/x.png"}) {
    folder.write(name, std::string("x"));
  }
  folder.make_folder("train/a/folder.jpg");
  const Datasets datasets = open_datasets(options_for(folder));
  EXPECT_EQ(names_of(*datasets.train), std::vector<std::string>({"a/1.png", "b/1.PNG", "b/no_extension"}));
  EXPECT_TRUE(
      has_note(datasets, "train: skipped files that are not images: 2 (the first: " + folder / "train/a/labels.json"));
  EXPECT_TRUE(has_note(datasets, "train: skipped hidden files: 2"));
  EXPECT_TRUE(has_note(datasets, "train: skipped files beside the class folders: 1"));
}

TEST(FolderLayoutTest, PipesSocketsAndDevicesNeverHangTheScan) {
  const TempFolder folder;
  write_images(folder, {"train/a/1.png", "train/b/1.png", "val/a/1.png", "val/b/1.png"});
  ASSERT_EQ(::mkfifo((folder / "train/a/pipe.jpg").c_str(), 0600), 0);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  (folder / "train/b/s.jpg").copy(address.sun_path, sizeof address.sun_path - 1);
  EXPECT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  std::filesystem::create_symlink("/dev/zero", folder / "train/b/zero.jpg");
  const Datasets datasets = open_datasets(options_for(folder));
  ::close(fd);
  EXPECT_EQ(datasets.train->size(), 2);
  EXPECT_TRUE(has_note(datasets, "skipped pipes, sockets and devices: 3"));
}

TEST(FolderLayoutTest, LinksInCirclesEndTheScanAndEveryFolderIsEnteredOnce) {
  const TempFolder folder;
  write_images(folder, {"train/a/1.png", "train/b/1.png", "val/a/1.png", "val/b/1.png", "elsewhere/2.png"});
  std::filesystem::create_directory_symlink("..", folder / "train/a/up");
  std::filesystem::create_directory_symlink(".", folder / "train/a/self");
  std::filesystem::create_directory_symlink(folder / "elsewhere", folder / "train/b/more");
  std::filesystem::create_directory_symlink(folder / "elsewhere", folder / "train/b/same");
  std::filesystem::create_symlink("loop.png", folder / "train/b/loop.png");
  const Datasets datasets = open_datasets(options_for(folder));
  EXPECT_TRUE(has_note(datasets, "skipped folders that links lead to a second time"));
  EXPECT_TRUE(has_note(datasets, "symbolic links that lead nowhere: 1 (the first: " + folder / "train/b/loop.png"));
  const std::vector<std::string> names = names_of(*datasets.train);
  // The link that leads to itself has an image's name: it is there, as an image that cannot be read.
  EXPECT_EQ(names, std::vector<std::string>({"a/1.png", "b/1.png", "b/loop.png", "b/more/2.png"}));
}

TEST(FolderLayoutTest, TwoClassesCannotBeOneFolder) {
  const TempFolder folder;
  write_images(folder, {"train/a/1.png", "val/a/1.png", "val/b/1.png"});
  std::filesystem::create_directory_symlink("a", folder / "train/b");
  const core::Error error = error_of([&] { open_datasets(options_for(folder)); });
  EXPECT_EQ(error.kind(), core::ErrorKind::data);
  EXPECT_EQ(error.what(), "class folder " + folder /
                                                "train/b is, by a link, the same folder as another class or one "
                                                "above it");
}

TEST(FolderLayoutTest, LinksAreSkippedWhenTheyAreNotToBeFollowed) {
  const TempFolder folder;
  write_images(folder, {"train/a/1.png", "train/b/1.png", "val/a/1.png", "val/b/1.png"});
  std::filesystem::create_symlink("1.png", folder / "train/a/2.png");
  config::DataOptions options = options_for(folder);
  EXPECT_EQ(open_datasets(options).train->size(), 3);
  options.follow_symlinks = false;
  const Datasets datasets = open_datasets(options);
  EXPECT_EQ(datasets.train->size(), 2);
  EXPECT_TRUE(has_note(datasets, "skipped symbolic links, because of --no-follow-symlinks: 1"));
}

TEST(FolderLayoutTest, AFileThatCannotBeReadIsABadImageWithItsCause) {
  const TempFolder folder;
  write_images(folder,
               {"train/a/1.png", "train/a/2.png", "train/a/3.png", "train/b/1.png", "val/a/1.png", "val/b/1.png"});
  std::filesystem::create_symlink("nowhere.png", folder / "train/a/0.png");
  const Datasets datasets = open_datasets(options_for(folder));
  folder.write("train/a/2.png", Bytes(10));
  std::filesystem::remove(folder / "train/a/3.png");
  ASSERT_EQ(names_of(*datasets.train)[0], "a/0.png");
  std::vector<uint8_t> buffer;
  SampleContent content;
  EXPECT_EQ(datasets.train->read(0, buffer, content), "No such file or directory");
  EXPECT_EQ(datasets.train->read(1, buffer, content), "");
  EXPECT_EQ(datasets.train->read(2, buffer, content), "it has changed since the scan");
  EXPECT_EQ(datasets.train->read(3, buffer, content), "No such file or directory");
  std::filesystem::remove(folder / "train/a/1.png");
  ASSERT_EQ(::mkfifo((folder / "train/a/1.png").c_str(), 0600), 0);
  EXPECT_EQ(datasets.train->read(1, buffer, content), "it is not a regular file");
}

TEST(FolderLayoutTest, AnEmptyClassIsAnErrorInTrainingAndANoteElsewhere) {
  const TempFolder folder;
  write_images(folder, {"train/a/1.png", "train/b/1.png", "val/a/1.png"});
  folder.make_folder("val/b");
  EXPECT_TRUE(has_note(open_datasets(options_for(folder)), "val: class folders without images: 1"));
  std::filesystem::remove(folder / "train/b/1.png");
  const core::Error error = error_of([&] { open_datasets(options_for(folder)); });
  EXPECT_EQ(error.kind(), core::ErrorKind::data);
  EXPECT_EQ(error.what(), "class folder " + folder / "train/b has 0 images (1 found in the classes before it)");
  EXPECT_EQ(error.hint(),
            "add images (JPEG, PNG, BMP, WebP, TIFF, GIF, PNM or JPEG 2000), sounds or videos, or remove the folder");
}

TEST(FolderLayoutTest, SplitsMustHaveTheSameClasses) {
  const TempFolder folder;
  write_images(folder, {"train/a/1.png", "train/b/1.png", "val/a/1.png", "val/c/1.png"});
  const core::Error error = error_of([&] { open_datasets(options_for(folder)); });
  EXPECT_EQ(error.kind(), core::ErrorKind::data);
  EXPECT_EQ(error.what(), "the class folders of " + folder /
                                                        "val differ from the classes that are learned: only here: c; "
                                                        "missing here: b.");
}

TEST(FolderLayoutTest, OneClassIsNotEnough) {
  const TempFolder folder;
  write_images(folder, {"train/a/1.png", "val/a/1.png"});
  const core::Error error = error_of([&] { open_datasets(options_for(folder)); });
  EXPECT_EQ(error.kind(), core::ErrorKind::data);
  EXPECT_EQ(error.what(), folder / "train holds 1 class folder (a); at least 2 classes are needed");
}

TEST(FolderLayoutTest, AFolderThatMayNotBeListedIsNamed) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may list everything";
  const TempFolder folder;
  write_images(folder, {"train/a/1.png", "train/b/1.png", "val/a/1.png", "val/b/1.png"});
  ::chmod((folder / "train/b").c_str(), 0);
  const core::Error error = error_of([&] { open_datasets(options_for(folder)); });
  ::chmod((folder / "train/b").c_str(), 0700);
  EXPECT_EQ(error.kind(), core::ErrorKind::permission);
  EXPECT_EQ(error.what(), "cannot list folder " + folder / "train/b: Permission denied");
}

TEST(FolderLayoutTest, AStopRequestEndsTheScan) {
  const TempFolder folder;
  write_images(folder, {"train/a/1.png", "train/b/1.png", "val/a/1.png", "val/b/1.png"});
  core::request_stop(15);
  EXPECT_THROW(open_datasets(options_for(folder)), core::StopRequested);
  core::request_stop(0);
}

TEST(OpenDatasetsTest, AMissingFolderIsNamedWithTheExpectedTree) {
  const TempFolder folder;
  config::DataOptions options = options_for(folder);
  options.data_dir = folder / "missing";
  const core::Error error = error_of([&] { open_datasets(options); });
  EXPECT_EQ(error.kind(), core::ErrorKind::no_input);
  EXPECT_EQ(error.what(), "the data folder " + folder / "missing does not exist");
  EXPECT_NE(error.hint().find("folder: train/<class>/*.jpg and val/<class>/*.jpg"), std::string::npos);
  options.data_dir = folder.write("file", std::string("x"));
  EXPECT_EQ(error_of([&] { open_datasets(options); }).what(), "the data folder " + folder / "file is not a folder");
  options.data_dir = folder.path();
  EXPECT_EQ(error_of([&] { open_datasets(options); }).what(), folder.path() + " holds no data set that is known here");
  EXPECT_EQ(error_of([&] { open_datasets(options); }).hint().rfind("expected below", 0), 0u);
  folder.write("one.jpg", std::string("x"));
  EXPECT_EQ(error_of([&] { open_datasets(options); }).hint().rfind("1 image lies in it, but no folder per class", 0),
            0u);
}

TEST(OpenDatasetsTest, TheFirstUsualNameIsTheValidationSplit) {
  const TempFolder folder;
  write_images(folder, {"train/a/1.png", "train/b/1.png", "test/a/t.png", "test/b/t.png"});
  EXPECT_EQ(open_datasets(options_for(folder)).val->relative_name(0), "a/t.png");
  write_images(folder, {"validation/a/v.png", "validation/b/v.png"});
  EXPECT_EQ(open_datasets(options_for(folder)).val->relative_name(0), "a/v.png");
  config::DataOptions options = options_for(folder);
  options.val_split = std::string("test");
  EXPECT_EQ(open_datasets(options).val->relative_name(0), "a/t.png");
  options.val_split = std::string("dev");
  EXPECT_EQ(error_of([&] { open_datasets(options); }).what(), folder.path() + " has no split 'dev'");
}

TEST(OpenDatasetsTest, WithoutAValidationSplitTheWayOutIsNamed) {
  const TempFolder folder;
  write_images(folder, {"train/a/1.png", "train/b/1.png"});
  const core::Error error = error_of([&] { open_datasets(options_for(folder)); });
  EXPECT_EQ(error.kind(), core::ErrorKind::no_input);
  EXPECT_EQ(error.what(),
            folder.path() + " has no validation split: none of val, validation, valid, test and t10k exists");
  EXPECT_EQ(error.hint(),
            "name one with --val-split, hold a part of the training images out with --val-fraction 0.1, or train "
            "without validation with --val-split none");
  config::DataOptions options = options_for(folder);
  options.val_split = config::kNoValidation;
  const Datasets alone = open_datasets(options);
  EXPECT_FALSE(alone.has_validation);
  EXPECT_EQ(alone.train->size(), 2);
  EXPECT_EQ(alone.notes.back().rfind("validation: none (--val-split none): no checkpoint is the best", 0), 0u);
}

TEST(OpenDatasetsTest, AHeldOutPartDependsOnNamesAlone) {
  const TempFolder folder;
  std::vector<std::string> names;
  for (int i = 0; i < 200; ++i)
    names.push_back("train/" + std::string(i % 2 == 0 ? "a/" : "b/") + std::to_string(i) + ".png");
  write_images(folder, names);
  config::DataOptions options = options_for(folder);
  options.val_fraction = 0.2;
  const Datasets before = open_datasets(options);
  EXPECT_EQ(before.train->size() + before.val->size(), 200);
  EXPECT_NEAR(static_cast<double>(before.val->size()), 40, 20);
  EXPECT_TRUE(has_note(before, " of 200 images held out by a hash of their names"));
  // A new file moves no other file to the other side.
  write_images(folder, {"train/a/new.png"});
  const Datasets after = open_datasets(options);
  std::vector<std::string> held_before = names_of(*before.val), held_after = names_of(*after.val);
  held_after.erase(std::remove(held_after.begin(), held_after.end(), "a/new.png"), held_after.end());
  EXPECT_EQ(held_after, held_before);
  // Nor does it matter where the data lies.
  const TempFolder elsewhere;
  write_images(elsewhere, names);
  options.data_dir = elsewhere.path();
  EXPECT_EQ(names_of(*open_datasets(options).val), held_before);
  options.data_dir = folder.path();
  EXPECT_EQ(open_split(options, "val")->fingerprint(), after.val->fingerprint());
  EXPECT_EQ(open_split(options, "train")->fingerprint(), after.train->fingerprint());
  EXPECT_NE(after.val->fingerprint(), after.train->fingerprint());
}

TEST(OpenDatasetsTest, ClassFoldersAloneServeWithAHeldOutPart) {
  const TempFolder folder;
  std::vector<std::string> names;
  for (int i = 0; i < 40; ++i) names.push_back(std::string(i % 2 == 0 ? "a/" : "b/") + std::to_string(i) + ".png");
  write_images(folder, names);
  config::DataOptions options = options_for(folder);
  const core::Error error = error_of([&] { open_datasets(options); });
  const std::string message = error.what();
  EXPECT_EQ(message.rfind(folder.path() + " has folders, but none is called 'train'\n", 0), 0u) << message;
  EXPECT_EQ(error.hint().rfind("if they are class folders, add --val-fraction 0.1", 0), 0u) << "the step ends it";
  options.val_fraction = 0.25;
  const Datasets datasets = open_datasets(options);
  EXPECT_EQ(datasets.train->size() + datasets.val->size(), 40);
  EXPECT_EQ(datasets.train->class_names(), std::vector<std::string>({"a", "b"}));
}

TEST(OpenDatasetsTest, OneSplitTakesItsLabelsFromTheTrainingSplit) {
  const TempFolder folder;
  write_images(folder, {"train/a/1.png", "train/b/1.png", "extra/a/1.png", "extra/b/2.png"});
  const auto extra = open_split(options_for(folder), "extra");
  EXPECT_EQ(extra->size(), 2);
  EXPECT_EQ(extra->label(1), 1);
  EXPECT_EQ(error_of([&] { open_split(options_for(folder), "none"); }).what(), folder.path() + " has no split 'none'");
}

TEST(OpenLooseImagesTest, AFolderOrAFileHasNoLabels) {
  const TempFolder folder;
  write_images(folder, {"b.png", "a/z.png", "c.jpg"});
  folder.write("notes.txt", std::string("x"));
  const auto images = open_loose_images(folder.path(), true);
  EXPECT_EQ(names_of(*images), std::vector<std::string>({"a/z.png", "b.png", "c.jpg"}));
  EXPECT_EQ(images->label(0), -1);
  EXPECT_EQ(images->name(0), folder / "a/z.png");
  EXPECT_EQ(images->num_classes(), 0);
  const auto one = open_loose_images(folder / "b.png", true);
  EXPECT_EQ(one->size(), 1);
  EXPECT_EQ(one->name(0), folder / "b.png");
  EXPECT_EQ(error_of([&] { open_loose_images(folder / "d.png", true); }).what(), folder / "d.png does not exist");
  EXPECT_EQ(error_of([&] { open_loose_images(folder.make_folder("empty"), true); }).what(),
            folder / "empty has no images");
}

}  // namespace
}  // namespace stoker::data
