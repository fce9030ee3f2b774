#include "tests/support/power_cut_files.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <utility>

#include "common/check.h"
#include "common/digest.h"
#include "tests/support/read_text.h"

namespace clew {
namespace {

namespace fs = std::filesystem;

// What may be left of a file of which `durable` was synced, `live` written.
std::vector<std::string> DataAlternatives(const std::string& durable,
                                          const std::string& live) {
  if (durable == live) {
    return {durable};
  }
  std::vector<std::string> all = {durable, live,
                                  live.substr(0, live.size() / 2),
                                  std::string(live.size(), '\0')};
  std::vector<std::string> distinct;
  for (std::string& one : all) {
    if (std::ranges::find(distinct, one) == distinct.end()) {
      distinct.push_back(std::move(one));
    }
  }
  return distinct;
}

}  // namespace

class PowerCutFiles::File final : public WritableFile {
 public:
  File(PowerCutFiles& disk, NodeRef node, std::unique_ptr<WritableFile> file)
      : disk_(disk), node_(std::move(node)), file_(std::move(file)) {}

  Status Append(std::span<const std::byte> bytes) override {
    const std::lock_guard lock(disk_.mutex_);
    CLEW_RETURN_IF_ERROR(disk_.Spend());
    node_->live.append(reinterpret_cast<const char*>(bytes.data()),
                       bytes.size());
    return file_->Append(bytes);
  }
  Status Sync() override {
    const std::lock_guard lock(disk_.mutex_);
    CLEW_RETURN_IF_ERROR(disk_.Spend());
    node_->durable = node_->live;
    return {};
  }

 private:
  PowerCutFiles& disk_;
  NodeRef node_;
  std::unique_ptr<WritableFile> file_;
};

PowerCutFiles::PowerCutFiles(std::string root)
    : root_(std::move(root)), disk_(std::make_shared<Node>()) {
  disk_->is_folder = true;
  Adopt(root_, *disk_, true);
}

void PowerCutFiles::FailAfter(int count) {
  const std::lock_guard lock(mutex_);
  left_ = count;
}

int PowerCutFiles::operations() const {
  const std::lock_guard lock(mutex_);
  return operations_;
}

bool PowerCutFiles::failing() const {
  const std::lock_guard lock(mutex_);
  return left_ == 0;
}

Status PowerCutFiles::Spend() {
  if (left_ == 0) {
    return SystemError(EIO, "the power was cut in this test");
  }
  if (left_ > 0) {
    --left_;
  }
  ++operations_;
  return {};
}

PowerCutFiles::NodeRef PowerCutFiles::Find(const std::string& path) {
  if (path == root_) {
    return disk_;
  }
  if (!path.starts_with(root_ + "/")) {
    return nullptr;
  }
  NodeRef node = disk_;
  for (const auto& part : fs::path(path.substr(root_.size() + 1))) {
    const auto at = node->names.find(part.string());
    if (at == node->names.end() || at->second.back() == nullptr) {
      return nullptr;
    }
    node = at->second.back();
  }
  return node;
}

void PowerCutFiles::SetName(const std::string& path, NodeRef node) {
  if (!path.starts_with(root_ + "/")) {
    return;
  }
  const NodeRef folder = Find(fs::path(path).parent_path().string());
  CLEW_CHECK(folder != nullptr, "{:?} is not on this disk", path);
  Name& name = folder->names[fs::path(path).filename().string()];
  if (name.empty()) {
    name.push_back(nullptr);  // durable: no such name
  }
  name.push_back(std::move(node));
}

void PowerCutFiles::Adopt(const std::string& path, Node& folder, bool durable) {
  for (const auto& entry : fs::directory_iterator(path)) {
    const std::string name = entry.path().filename().string();
    Name& known = folder.names[name];
    if (known.empty() || known.back() == nullptr) {
      auto node = std::make_shared<Node>();
      node->is_folder = entry.is_directory();
      if (!node->is_folder) {
        node->live = test::ReadText(entry.path());
        node->durable = durable ? node->live : "";
      }
      if (known.empty() && !durable) {
        known.push_back(nullptr);
      }
      known.push_back(std::move(node));
    }
    if (entry.is_directory()) {
      Adopt(entry.path().string(), *known.back(), durable);
    }
  }
}

Result<std::unique_ptr<WritableFile>> PowerCutFiles::Create(
    const std::string& path) {
  const std::lock_guard lock(mutex_);
  CLEW_RETURN_IF_ERROR(Spend());
  CLEW_ASSIGN_OR_RETURN(file, PosixFileSystem().Create(path));
  NodeRef node = Find(path);
  if (node == nullptr) {
    node = std::make_shared<Node>();
    SetName(path, node);
  }
  node->live.clear();
  return std::make_unique<File>(*this, std::move(node), std::move(file));
}

Status PowerCutFiles::CreateDirectory(const std::string& path) {
  const std::lock_guard lock(mutex_);
  CLEW_RETURN_IF_ERROR(Spend());
  CLEW_RETURN_IF_ERROR(PosixFileSystem().CreateDirectory(path));
  auto node = std::make_shared<Node>();
  node->is_folder = true;
  SetName(path, std::move(node));
  return {};
}

Status PowerCutFiles::Rename(const std::string& from, const std::string& to) {
  const std::lock_guard lock(mutex_);
  CLEW_RETURN_IF_ERROR(Spend());
  CLEW_RETURN_IF_ERROR(PosixFileSystem().Rename(from, to));
  NodeRef node = Find(from);
  CLEW_CHECK(node != nullptr || !from.starts_with(root_),
             "{:?} is not on this disk", from);
  SetName(from, nullptr);
  SetName(to, std::move(node));
  return {};
}

Status PowerCutFiles::SyncDirectory(const std::string& path) {
  const std::lock_guard lock(mutex_);
  CLEW_RETURN_IF_ERROR(Spend());
  if (!fs::is_directory(path)) {
    return SystemError(ENOENT, "cannot sync " + path);
  }
  const NodeRef node = Find(path);
  if (node == nullptr) {
    return {};  // above the root
  }
  Adopt(path, *node, false);
  for (auto& [name, states] : node->names) {
    states.erase(states.begin(), states.end() - 1);
  }
  std::erase_if(node->names, [](const auto& entry) {
    return entry.second.front() == nullptr;
  });
  return {};
}

Status PowerCutFiles::SyncFile(const std::string& path) {
  const std::lock_guard lock(mutex_);
  CLEW_RETURN_IF_ERROR(Spend());
  if (!fs::is_regular_file(path)) {
    return SystemError(ENOENT, "cannot sync " + path);
  }
  NodeRef node = Find(path);
  if (node == nullptr) {
    node = std::make_shared<Node>();
    SetName(path, node);
  }
  node->live = node->durable = test::ReadText(path);
  return {};
}

Status PowerCutFiles::RemoveAll(const std::string& path) {
  const std::lock_guard lock(mutex_);
  CLEW_RETURN_IF_ERROR(Spend());
  if (!fs::exists(path)) {
    return {};
  }
  CLEW_RETURN_IF_ERROR(PosixFileSystem().RemoveAll(path));
  const NodeRef node = Find(path);
  if (node == nullptr) {
    return {};  // written by others, and no folder was synced since
  }
  // A tree goes name by name, in an order that nobody promises.
  const std::function<void(Node&)> clear = [&](Node& folder) {
    for (auto& [name, states] : folder.names) {
      if (states.back() != nullptr) {
        clear(*states.back());
        states.push_back(nullptr);
      }
    }
  };
  clear(*node);
  SetName(path, nullptr);
  return {};
}

void PowerCutFiles::AfterCut(const std::string& to, const Choose& choose) {
  const std::lock_guard lock(mutex_);
  Adopt(root_, *disk_, false);
  Write(*disk_, to, choose);
}

void PowerCutFiles::Write(const Node& folder, const std::string& to,
                          const Choose& choose) {
  fs::create_directory(to);
  for (const auto& [name, states] : folder.names) {
    const std::string path = to + "/" + name;
    Name distinct;
    for (const NodeRef& state : states) {
      if (std::ranges::find(distinct, state) == distinct.end()) {
        distinct.push_back(state);
      }
    }
    const auto count = static_cast<unsigned>(distinct.size());
    const NodeRef& node = distinct[count > 1 ? choose(path, count) : 0];
    if (node == nullptr) {
      continue;
    }
    if (node->is_folder) {
      Write(*node, path, choose);
      continue;
    }
    const auto data = DataAlternatives(node->durable, node->live);
    const auto kinds = static_cast<unsigned>(data.size());
    std::ofstream(path, std::ios::binary)
        << data[kinds > 1 ? choose(path, kinds) : 0];
  }
}

int ForEveryChoice(int limit, uint64_t seed,
                   const std::function<void(const PowerCutFiles::Choose&)>& run,
                   bool* complete) {
  struct Answer {
    unsigned given;
    unsigned alternatives;
  };
  std::vector<Answer> answers;  // given so far, an odometer
  *complete = false;
  for (int runs = 1;; ++runs) {
    size_t at = 0;
    run([&](const std::string&, unsigned alternatives) {
      if (at == answers.size()) {
        answers.push_back({0, alternatives});
      }
      CLEW_CHECK(answers[at].alternatives == alternatives,
                 "the program asks for something else this time");
      return answers[at++].given;
    });
    while (!answers.empty() &&
           answers.back().given + 1 == answers.back().alternatives) {
      answers.pop_back();
    }
    if (answers.empty()) {
      *complete = true;
      return runs;
    }
    ++answers.back().given;
    if (runs < limit) {
      continue;
    }
    Random random(seed);
    for (int i = 0; i < limit; ++i) {
      run([&](const std::string&, unsigned alternatives) {
        return static_cast<unsigned>(random.Below(alternatives));
      });
    }
    return runs + limit;
  }
}

}  // namespace clew
