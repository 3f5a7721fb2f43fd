// SPDX-License-Identifier: Apache-2.0
#include "tests/faulty_file_system.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace stoker::fixtures {

namespace fs = std::filesystem;

/// A file, link or directory: what it is now, and what of it is synced.
struct FaultyFileSystem::Node {
  enum class Kind { file, link, directory };
  using Names = std::map<std::string, std::shared_ptr<Node>>;

  Kind kind = Kind::file;
  std::string content, synced_content;  ///< content of a file; a link's target is always synced with its name
  Names names, synced_names;            ///< entries of a directory
};

namespace {

std::string content_of(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::string name_in(const std::string& path) { return fs::path(path).filename().string(); }

}  // namespace

/// Keeps the content in the node beside the real file.
class FaultyFileSystem::TrackedFile : public core::File {
 public:
  TrackedFile(FaultyFileSystem& owner, std::unique_ptr<core::File> real, std::shared_ptr<Node> node)
      : owner_(owner), real_(std::move(real)), node_(std::move(node)) {}

  int write(const void* bytes, uint64_t count) override {
    const int failure = owner_.begin_call();
    if (failure != 0 && owner_.has_power()) write_now(bytes, count / 2);
    return failure != 0 ? failure : write_now(bytes, count);
  }
  int read(void* bytes, uint64_t count, uint64_t& got) override {
    const int failure = owner_.begin_call();
    got = 0;
    return failure != 0 ? failure : real_->read(bytes, count, got);
  }
  int size(uint64_t& bytes) override {
    const int failure = owner_.begin_call();
    return failure != 0 ? failure : real_->size(bytes);
  }
  int truncate(uint64_t bytes) override {
    if (const int failure = owner_.begin_call(); failure != 0) return failure;
    const int result = real_->truncate(bytes);
    if (result == 0 && node_) node_->content.resize(bytes);
    return result;
  }
  int sync() override {
    if (const int failure = owner_.begin_call(); failure != 0) return failure;
    if (node_) node_->synced_content = node_->content;  // the test needs no real fsync
    return 0;
  }
  int close() override {
    const int failure = owner_.begin_call();
    const int result = real_->close();
    return failure != 0 ? failure : result;
  }

 private:
  int write_now(const void* bytes, uint64_t count) {
    const int result = real_->write(bytes, count);
    if (result == 0 && node_) node_->content.append(static_cast<const char*>(bytes), count);
    return result;
  }

  FaultyFileSystem& owner_;
  std::unique_ptr<core::File> real_;
  std::shared_ptr<Node> node_;
};

FaultyFileSystem::FaultyFileSystem(const std::string& root)
    : root_path_(root), root_(scan(root)), real_(core::posix_file_system()) {}

FaultyFileSystem::~FaultyFileSystem() = default;

void FaultyFileSystem::fail_call(int64_t number, int error_number) {
  failing_call_ = number;
  error_number_ = error_number;
}

void FaultyFileSystem::cut_power_after(int64_t number) { last_call_ = number; }

bool FaultyFileSystem::has_power() const { return last_call_ < 0 || calls_ <= last_call_; }

int FaultyFileSystem::begin_call() {
  ++calls_;
  if (!has_power()) return EIO;
  return calls_ == failing_call_ ? error_number_ : 0;
}

std::shared_ptr<FaultyFileSystem::Node> FaultyFileSystem::scan(const std::string& path) {
  auto node = std::make_shared<Node>();
  if (fs::is_symlink(path)) {
    node->kind = Node::Kind::link;
    node->content = fs::read_symlink(path).string();
  } else if (fs::is_directory(path)) {
    node->kind = Node::Kind::directory;
    for (const auto& entry : fs::directory_iterator(path)) {
      node->names[entry.path().filename().string()] = scan(entry.path().string());
    }
    node->synced_names = node->names;
  } else {
    node->content = node->synced_content = content_of(path);
  }
  return node;
}

void FaultyFileSystem::write_out(const Node& node, const std::string& path, Unsynced unsynced) {
  switch (node.kind) {
    case Node::Kind::link: fs::create_symlink(node.content, path); return;
    case Node::Kind::file: std::ofstream(path, std::ios::binary) << node.synced_content; return;
    case Node::Kind::directory: break;
  }
  fs::create_directory(path);
  for (const auto& [name, child] : unsynced == Unsynced::lost ? node.synced_names : node.names) {
    write_out(*child, path + "/" + name, unsynced);
  }
}

void FaultyFileSystem::restart(Unsynced unsynced) {
  if (unsynced == Unsynced::kept) return;
  fs::remove_all(root_path_);
  write_out(*root_, root_path_, unsynced);
}

FaultyFileSystem::Node* FaultyFileSystem::find(const std::string& path) const {
  if (path == root_path_) return root_.get();
  Node* const parent = parent_of(path);
  if (parent == nullptr) return nullptr;
  const auto found = parent->names.find(name_in(path));
  return found == parent->names.end() ? nullptr : found->second.get();
}

FaultyFileSystem::Node* FaultyFileSystem::parent_of(const std::string& path) const {
  if (path.size() <= root_path_.size() || path.compare(0, root_path_.size() + 1, root_path_ + "/") != 0) return nullptr;
  return find(fs::path(path).parent_path().string());
}

int FaultyFileSystem::create(const std::string& path, std::unique_ptr<core::File>& file) {
  if (const int failure = begin_call(); failure != 0) return failure;
  std::unique_ptr<core::File> real;
  if (const int failure = real_.create(path, real); failure != 0) return failure;
  auto node = std::make_shared<Node>();
  if (Node* const parent = parent_of(path)) parent->names[name_in(path)] = node;
  file = std::make_unique<TrackedFile>(*this, std::move(real), std::move(node));
  return 0;
}

int FaultyFileSystem::append(const std::string& path, std::unique_ptr<core::File>& file) {
  if (const int failure = begin_call(); failure != 0) return failure;
  std::unique_ptr<core::File> real;
  if (const int failure = real_.append(path, real); failure != 0) return failure;
  std::shared_ptr<Node> node;
  if (Node* const parent = parent_of(path)) {
    std::shared_ptr<Node>& named = parent->names[name_in(path)];
    if (!named) named = std::make_shared<Node>();
    node = named;
  }
  file = std::make_unique<TrackedFile>(*this, std::move(real), std::move(node));
  return 0;
}

int FaultyFileSystem::open(const std::string& path, core::Links links, std::unique_ptr<core::File>& file) {
  if (const int failure = begin_call(); failure != 0) return failure;
  std::unique_ptr<core::File> real;
  if (const int failure = real_.open(path, links, real); failure != 0) return failure;
  file = std::make_unique<TrackedFile>(*this, std::move(real), nullptr);
  return 0;
}

int FaultyFileSystem::make_directory(const std::string& path) {
  if (const int failure = begin_call(); failure != 0) return failure;
  if (const int failure = real_.make_directory(path); failure != 0) return failure;
  if (Node* const parent = parent_of(path)) {
    auto node = std::make_shared<Node>();
    node->kind = Node::Kind::directory;
    parent->names[name_in(path)] = std::move(node);
  }
  return 0;
}

int FaultyFileSystem::list(const std::string& directory, std::vector<core::DirectoryEntry>& entries) {
  const int failure = begin_call();
  return failure != 0 ? failure : real_.list(directory, entries);
}

int FaultyFileSystem::sync_directory(const std::string& directory) {
  if (const int failure = begin_call(); failure != 0) return failure;
  if (Node* const node = find(directory)) node->synced_names = node->names;
  return 0;
}

int FaultyFileSystem::rename(const std::string& from, const std::string& to) {
  if (const int failure = begin_call(); failure != 0) return failure;
  if (const int failure = real_.rename(from, to); failure != 0) return failure;
  Node *const source = parent_of(from), *const target = parent_of(to);
  if (source == nullptr || target == nullptr) throw std::logic_error("a rename across the tested folder");
  auto moved = source->names.extract(name_in(from));
  target->names[name_in(to)] = moved.mapped();
  return 0;
}

int FaultyFileSystem::exchange(const std::string& one, const std::string& other) {
  if (const int failure = begin_call(); failure != 0) return failure;
  if (can_exchange_) {
    if (const int failure = real_.exchange(one, other); failure != 0) return failure;
    std::swap(parent_of(one)->names.at(name_in(one)), parent_of(other)->names.at(name_in(other)));
    return 0;
  }
  return EINVAL;
}

int FaultyFileSystem::link(const std::string& target, const std::string& path) {
  if (const int failure = begin_call(); failure != 0) return failure;
  if (const int failure = real_.link(target, path); failure != 0) return failure;
  if (Node* const parent = parent_of(path)) {
    auto node = std::make_shared<Node>();
    node->kind = Node::Kind::link;
    node->content = target;
    parent->names[name_in(path)] = std::move(node);
  }
  return 0;
}

int FaultyFileSystem::remove(const std::string& path) {
  if (const int failure = begin_call(); failure != 0) return failure;
  if (const int failure = real_.remove(path); failure != 0) return failure;
  if (Node* const parent = parent_of(path)) parent->names.erase(name_in(path));
  return 0;
}

}  // namespace stoker::fixtures
