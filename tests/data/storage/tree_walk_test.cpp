// SPDX-License-Identifier: Apache-2.0
#include "data/storage/tree_walk.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "core/system/stop_signal.h"
#include "made_data.h"

namespace stoker::data {
namespace {

using Names = std::vector<std::string>;

class TreeWalkTest : public testing::Test {
 protected:
  /// The files that a new walker visits below the folder, in its order. `stamps_` are by name.
  Names visited(bool follow_symlinks = true) {
    notes_ = ScanNotes();
    stamps_.clear();
    TreeWalker walker(follow_symlinks, notes_);
    walker.claim(folder_.path());
    Names names;
    walker.visit_images(folder_.path(), "", [&](const std::string& name, const FileStamp& stamp) {
      names.push_back(name);
      stamps_[name] = stamp;
    });
    return names;
  }
  void link(const std::string& target, const std::string& name) const {
    std::filesystem::create_symlink(target, folder_ / name);
  }

  TempFolder folder_;
  ScanNotes notes_;
  std::map<std::string, FileStamp> stamps_;
};

TEST_F(TreeWalkTest, VisitsImagesInBytewiseOrderOfNamesAtEachLevel) {
  for (const char* const name : {"b.png", "B.png", "a/2.png", "a/10.png", "a/deep/x.jpg", "a.png"}) {
    folder_.write(name, std::string("bytes"));
  }
  // "a" sorts before "a.png"; the files of a folder come where the folder stands.
  EXPECT_EQ(visited(), (Names{"B.png", "a/10.png", "a/2.png", "a/deep/x.jpg", "a.png", "b.png"}));
  EXPECT_EQ(stamps_["a.png"].size, 5);
  EXPECT_GT(stamps_["a.png"].modified_ns, 0);
  EXPECT_EQ(notes_.lines(), Names());
}

TEST_F(TreeWalkTest, StartsBelowTheFolderThatIsNamed) {
  folder_.write("a/1.png", std::string("x"));
  folder_.write("b/2.png", std::string("x"));
  TreeWalker walker(true, notes_);
  Names names;
  walker.visit_images(folder_.path(), "b", [&](const std::string& name, const FileStamp&) { names.push_back(name); });
  EXPECT_EQ(names, Names{"b/2.png"});
}

TEST_F(TreeWalkTest, LeavesOutWhatIsNoImageAndCountsIt) {
  folder_.write("1.png", std::string("x"));
  folder_.write("no_extension", std::string("GIF89a, and so on"));  // its content decides
  folder_.write("readme.TXT", std::string("x"));
  folder_.write("labels.csv", std::string("x"));
  folder_.write(".hidden.png", std::string("x"));
  folder_.write("Thumbs.db", std::string("x"));
  ASSERT_EQ(::mkfifo((folder_ / "pipe.png").c_str(), 0600), 0);
  EXPECT_EQ(visited(), (Names{"1.png", "no_extension"}));
  EXPECT_EQ(notes_.lines(), (Names{"skipped files that are not images: 2 (the first: " + folder_ / "labels.csv)",
                                   "skipped hidden files: 2 (the first: " + folder_ / ".hidden.png)",
                                   "skipped pipes, sockets and devices: 1 (the first: " + folder_ / "pipe.png)"}));
}

TEST_F(TreeWalkTest, LeftoversAreNoImagesWhateverTheyHold) {
  const std::string picture = "GIF89a, and so on";
  folder_.write("a.jpg", picture);
  folder_.write("b", picture);
  folder_.write("c.heic", std::string("\0\0\0\x18"
                                      "ftypheic",
                                      12));
  const Names leftovers = {"a.jpg.part", "a.jpg.crdownload", "a.jpg~",     "a.jpg:Zone.Identifier",
                           "a.jpg.tmp",  "#a.jpg#",          "a.jpg.!sync"};
  const Names others = {"a.MOV", "a.AAE", "a.xmp", "a.jpg.Zone", "Icon\r", "a.info"};
  const Names raw = {"a.CR2", "a.dng"};
  const Names folders = {"@eaDir",
                         "__MACOSX",
                         "#recycle",
                         "@__thumb",
                         "~snapshot",
                         "FOUND.002",
                         "#recycle-1",
                         "@SynoResource",
                         "@Trash",
                         "!sync",
                         "CANONMSC",
                         "My Previews.lrdata",
                         "Photos.photoslibrary/resources"};
  for (const std::string& name : leftovers) folder_.write(name, picture);
  for (const std::string& name : others) folder_.write(name, std::string("[ZoneTransfer]"));
  for (const std::string& name : raw) folder_.write(name, std::string("II*\0", 4));
  for (const std::string& name : folders) folder_.write(name + "/thumb.jpg", picture);
  for (const std::string name : {"SYNOFILE_THUMB_M.jpg", "AlbumArt_{1}_Large.jpg", "Folder.jpg"}) {
    folder_.write(name, picture);
  }
  EXPECT_EQ(visited(), (Names{"a.jpg", "b", "c.heic"}));
  const Names lines = notes_.lines();
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(
      lines[0].rfind("skipped files of cameras' own formats, which are not read (convert them to JPEG or TIFF): 2", 0),
      0u);
  EXPECT_EQ(lines[1].rfind("skipped files that are not images: 6", 0), 0u) << lines[1];
  EXPECT_EQ(lines[2].rfind("skipped folders of systems and NAS boxes: 13", 0), 0u) << lines[2];
  EXPECT_EQ(lines[3].rfind("skipped leftovers of downloads and editors: 7", 0), 0u) << lines[3];
  EXPECT_EQ(lines[4].rfind("skipped thumbnails of NAS boxes and media players: 3", 0), 0u) << lines[4];
}

TEST_F(TreeWalkTest, NamesThatAreNearlyThoseOfLitterAreKept) {
  const Names kept = {
      "#1/a.jpg",   "#recycle-bins/a.jpg", "Folder/a.jpg", "Folder.jpg", "Photos.photoslibrary/originals/a.jpg",
      "Sync/a.jpg", "resources/a.jpg"};
  for (const std::string& name : kept) folder_.write(name, std::string("x"));
  EXPECT_EQ(visited(), kept);
}

TEST_F(TreeWalkTest, ACircleOfLinksEnds) {
  folder_.write("a/1.png", std::string("x"));
  link("..", "a/up");
  link("a", "again");
  EXPECT_EQ(visited(), Names{"a/1.png"});
  EXPECT_EQ(notes_.lines(),
            Names{"skipped folders that links lead to a second time: 2 (the first: " + folder_ / "a/up)"});
}

TEST_F(TreeWalkTest, ALinkToAFolderAboveIsACircleWhereTheAncestorsAreClaimed) {
  folder_.write("set/1.png", std::string("x"));
  folder_.write("elsewhere.png", std::string("x"));
  link(folder_.path(), "set/up");
  TreeWalker walker(true, notes_);
  walker.claim_with_ancestors(folder_ / "set");
  Names names;
  walker.visit_images(folder_ / "set", "", [&](const std::string& name, const FileStamp&) { names.push_back(name); });
  EXPECT_EQ(names, Names{"1.png"});
}

TEST_F(TreeWalkTest, LinksAreFollowedUnlessTurnedOff) {
  const TempFolder other;
  other.write("far.png", std::string("four"));
  other.write("set/1.png", std::string("x"));
  link(other / "far.png", "near.png");
  link(other / "set", "set");
  EXPECT_EQ(visited(), (Names{"near.png", "set/1.png"}));
  EXPECT_EQ(stamps_["near.png"].size, 4) << "of what it leads to";
  EXPECT_EQ(visited(/*follow_symlinks=*/false), Names());
  EXPECT_EQ(notes_.lines(),
            Names{"skipped symbolic links, because of --no-follow-symlinks: 2 (the first: " + folder_ / "near.png)"});
}

TEST_F(TreeWalkTest, ALinkThatLeadsNowhereIsABadImageIfItIsCalledLikeOne) {
  link("gone", "lost.jpg");
  link("gone", "lost");
  EXPECT_EQ(visited(), Names{"lost.jpg"});
  EXPECT_EQ(stamps_["lost.jpg"].size, -1) << "reading it fails";
  EXPECT_EQ(notes_.lines(), Names{"symbolic links that lead nowhere: 2 (the first: " + folder_ / "lost)"});
}

TEST_F(TreeWalkTest, AFolderIsClaimedOnceByWhateverPath) {
  folder_.make_folder("a");
  link("a", "b");
  TreeWalker walker(true, notes_);
  EXPECT_TRUE(walker.claim(folder_ / "a"));
  EXPECT_FALSE(walker.claim(folder_ / "b"));
  EXPECT_FALSE(walker.claim(folder_ / "a/../a"));
  EXPECT_TRUE(TreeWalker(true, notes_).claim(folder_ / "b")) << "each walker for itself";
}

TEST_F(TreeWalkTest, FoldersAreListedWithoutFilesAndHiddenOnes) {
  for (const char* const name : {"dog", "Cat", ".git"}) folder_.make_folder(name);
  folder_.write("a.png", std::string("x"));
  link("dog", "linked");
  TreeWalker walker(true, notes_);
  EXPECT_EQ(walker.folders_in(folder_.path()), (Names{"Cat", "dog", "linked"}));
  EXPECT_EQ(notes_.lines(), Names{"skipped files beside the class folders: 1 (the first: " + folder_ / "a.png)"});
  EXPECT_EQ(TreeWalker(false, notes_).folders_in(folder_.path()), (Names{"Cat", "dog"}));
}

TEST_F(TreeWalkTest, AMissingFolderIsNamed) {
  TreeWalker walker(true, notes_);
  const core::Error error = error_of([&] { walker.folders_in(folder_ / "none"); });
  EXPECT_EQ(error.kind(), core::ErrorKind::no_input);
  EXPECT_EQ(error.what(), "cannot list folder " + folder_ / "none: No such file or directory");
  EXPECT_EQ(error_of([&] { walker.claim(folder_ / "none"); }).kind(), core::ErrorKind::no_input);
  EXPECT_EQ(error_of([&] { image_names_in(folder_ / "none"); }).kind(), core::ErrorKind::no_input);
}

TEST_F(TreeWalkTest, AStopRequestEndsTheWalk) {
  folder_.write("1.png", std::string("x"));
  core::request_stop(15);
  EXPECT_THROW(visited(), core::StopRequested);
  core::request_stop(0);
}

TEST_F(TreeWalkTest, NamesOfImagesAreRecognisedByExtensionInAnyCase) {
  for (const char* const name : {"a.jpg", "A.JPEG", "b.jfif", "x.y.PnG", "d.bmp", "e.webp"}) {
    EXPECT_TRUE(has_image_name(name)) << name;
  }
  for (const char* const name : {"a.jp", "jpg", ".jpg", "a.png.txt", "folder.png/file", ""}) {
    EXPECT_FALSE(has_image_name(name)) << name;
  }
  for (const char* const name : {"b.png", "a.jpg", ".c.png", "note.txt"}) folder_.write(name, std::string("x"));
  EXPECT_EQ(image_names_in(folder_.path()), (Names{"a.jpg", "b.png"}));
}

TEST_F(TreeWalkTest, OnlyRegularFilesHaveAStamp) {
  folder_.write("1.png", std::string("abc"));
  link("1.png", "2.png");
  EXPECT_EQ(stamp_of(folder_ / "1.png").size, 3);
  EXPECT_EQ(stamp_of(folder_ / "2.png").size, 3);
  EXPECT_EQ(stamp_of(folder_.path()).size, -1);
  EXPECT_EQ(stamp_of(folder_ / "none").size, -1);
  EXPECT_TRUE(is_directory(folder_.path()));
  EXPECT_FALSE(is_directory(folder_ / "1.png"));
}

TEST(NearestFileTest, NamesThatDifferInCaseOrInAFewLettersAreFound) {
  const TempFolder folder;
  folder.write("img_000.png", "");
  folder.write("img_001.png", "");
  EXPECT_EQ(nearest_file(folder / "IMG_001.PNG"), folder / "img_001.png");
  EXPECT_EQ(nearest_file(folder / "imgg_000.png"), folder / "img_000.png");
  EXPECT_EQ(nearest_file(folder / "another.jpeg"), "");
  EXPECT_EQ(nearest_file("/nowhere/x.png"), "");
}

}  // namespace
}  // namespace stoker::data
