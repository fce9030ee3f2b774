#ifndef CLEW_TESTS_SUPPORT_POWER_CUT_FILES_H_
#define CLEW_TESTS_SUPPORT_POWER_CUT_FILES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/os/file.h"

namespace clew {

// A disk that forgets what was not synced. Operations work on a real folder, so
// that readers see what programs see; beside it a model says what is durable:
//
// - bytes of a file: those at its last Sync or SyncFile;
// - a name in a folder: as at the folder's last SyncDirectory. That a file was
//   synced says nothing of its name, that a folder was synced nothing of what
//   its files hold, and the two ends of a rename are two changes.
//
// Everything else is open until the power is cut: AfterCut asks `choose` for
// each name and each file separately. Weaker than Linux file systems with a
// journal, so what holds here holds there. Thread-safe.
class PowerCutFiles final : public FileSystem {
 public:
  // For the name or the contents of `path` in the outcome: answers
  // 0..alternatives - 1; 0 is always "only what is durable".
  using Choose =
      std::function<unsigned(const std::string& path, unsigned alternatives)>;

  // What is in `root` is durable. Nothing outside it is known.
  explicit PowerCutFiles(std::string root);

  // Operations after the next `count` fail and do nothing.
  void FailAfter(int count);
  // They work again: only the program died, the machine goes on.
  void Heal() { FailAfter(-1); }
  int operations() const;  // that worked
  bool failing() const;

  // Writes what the disk may hold if the power goes now to the new folder `to`.
  void AfterCut(const std::string& to, const Choose& choose);

  Result<std::unique_ptr<WritableFile>> Create(
      const std::string& path) override;
  Status CreateDirectory(const std::string& path) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status SyncDirectory(const std::string& path) override;
  Status SyncFile(const std::string& path) override;
  Status RemoveAll(const std::string& path) override;

 private:
  class File;
  struct Node;
  using NodeRef = std::shared_ptr<Node>;  // names of one node: live and durable
  // What a name may stand for on disk: the durable state first, the live one
  // last. Null: no such name.
  using Name = std::vector<NodeRef>;
  struct Node {
    bool is_folder = false;
    std::map<std::string, Name> names;  // of a folder
    std::string live;                   // of a file
    std::string durable;
  };

  [[nodiscard]] Status Spend();
  // nullptr where there is no such thing, or it is outside of root_.
  NodeRef Find(const std::string& path);
  void SetName(const std::string& path, NodeRef node);
  // Adds what others than we wrote below `path`, durable or not.
  void Adopt(const std::string& path, Node& folder, bool durable);
  void Write(const Node& folder, const std::string& to, const Choose& choose);

  const std::string root_;
  mutable std::mutex mutex_;
  NodeRef disk_;
  int left_ = -1;  // -1: no limit
  int operations_ = 0;
};

// All the ways to answer a program that chooses: call `run` with a Choose until
// every sequence of answers was given, or `limit` of them; beyond that, random
// ones from `seed`. Returns the number of runs.
int ForEveryChoice(int limit, uint64_t seed,
                   const std::function<void(const PowerCutFiles::Choose&)>& run,
                   bool* complete);

}  // namespace clew

#endif  // CLEW_TESTS_SUPPORT_POWER_CUT_FILES_H_
