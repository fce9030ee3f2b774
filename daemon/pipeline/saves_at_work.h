#ifndef CLEW_DAEMON_PIPELINE_SAVES_AT_WORK_H_
#define CLEW_DAEMON_PIPELINE_SAVES_AT_WORK_H_

#include <cstddef>
#include <cstdint>
#include <map>

#include "daemon/source/saver.h"

namespace clew::daemon {

// The bundles that are being saved: for whom, and what room they may take. What
// may be written counts as taken, also where it is written already.
class SavesAtWork {
 public:
  void Add(Saver::Id id, uint32_t user, uint64_t bytes_max) {
    saves_[id] = {.user = user, .bytes_max = bytes_max};
  }
  void Remove(Saver::Id id) { saves_.erase(id); }

  size_t count() const { return saves_.size(); }
  // Returns whether `user` has to wait if there may be `most` saves at once.
  bool IsFullFor(uint32_t user, uint64_t most) const;
  // Returns how much all of them together may write.
  uint64_t bytes_max() const;

 private:
  struct Save {
    uint32_t user = 0;
    uint64_t bytes_max = 0;
  };

  std::map<Saver::Id, Save> saves_;
};

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_PIPELINE_SAVES_AT_WORK_H_
