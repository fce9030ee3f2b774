#ifndef CLEW_RECORDER_TRACER_PATH_READER_H_
#define CLEW_RECORDER_TRACER_PATH_READER_H_

#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "common/result.h"
#include "recorder/native/leaps.h"
#include "recorder/tracer/shared_memory.h"

namespace clew::tracer {

// Where a fragment starts, for those that were translated. Follows the table as
// it grows, and begins anew.
class FragmentIndex {
 public:
  explicit FragmentIndex(const SharedMemory& shared) : shared_(shared) {}
  // Returns the one that a thread of this space runs at an address, in this
  // version; 0: there is none.
  uint32_t Find(uint32_t space, uint32_t version, uint64_t start);

 private:
  struct Key {
    uint32_t space = 0;
    uint64_t start = 0;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    size_t operator()(const Key& key) const {
      return std::hash<uint64_t>()(key.start ^ uint64_t{key.space} << 48);
    }
  };

  void Extend();
  // False: it is not written yet.
  bool Add(uint32_t fragment);

  const SharedMemory& shared_;
  uint32_t forgotten_ = 0;  // SharedHeader::forgotten
  std::unordered_map<Key, uint32_t, Hash> latest_;
  // Of those that another one with the same key followed.
  std::unordered_map<uint32_t, uint32_t> earlier_;
  uint32_t next_ = 1;
  std::vector<uint32_t> not_written_;  // of those before
};

// Expands the log of a thread (shared_layout.h) to the code that it ran. What
// it reads may be foul: then it fails with kCorruptInput, and says which number
// is.
class PathReader {
 public:
  // Is told what ran, by the numbers of fragments. What it fails with, reading
  // fails with.
  using Sink = std::function<Status(const recorder::CodeStretch&)>;

  // Of a thread of that space. The others are borrowed.
  PathReader(const SharedMemory& shared, FragmentIndex& index, uint32_t space)
      : shared_(shared), index_(index), space_(space) {}

  // Tells `sink` of the code up to what the last record says, and the end of
  // the batch.
  [[nodiscard]] Status Read(const Batch& batch, const Sink& sink);
  // The same of records of that version.
  [[nodiscard]] Status Read(std::span<const LogRecord> records,
                            uint32_t version, const Sink& sink);
  // Tells it of the code from there to the end of the batch. REQUIRES: its
  // records were read.
  [[nodiscard]] Status ReadEnd(const Batch& batch, const Sink& sink);

  // Where the thread is, as far as its log was read.
  struct Place {
    bool has_begun = false;  // otherwise the log begins anew
    uint64_t addr = 0;
    uint32_t fragment = 0;  // that starts there; 0: not known
  };
  const Place& place() const { return place_; }
  // Somebody else has read records of that version up to there.
  void GoOnAt(const Place& place) { place_ = place; }
  // Makes it the version of what is read next.
  void SetVersion(uint32_t version) {
    if (version != version_) {
      version_ = version;
      place_.fragment = 0;  // another one may start where the thread is
    }
  }
  uint32_t version() const { return version_; }
  // The fragment at an address in that version; 0: there is none.
  uint32_t FragmentAt(uint64_t addr) {
    return index_.Find(space_, version_, addr);
  }
  // Tells it of the code up to a system call at `addr` that did not return.
  [[nodiscard]] Status ReadToCall(uint64_t addr, const Sink& sink);

 private:
  [[nodiscard]] Status ReadTaken(uint32_t edge, const Sink& sink);
  [[nodiscard]] Status ReadEntered(uint32_t fragment, const Sink& sink);
  // Up to the instruction at `addr`, which did not run.
  [[nodiscard]] Status ReadBefore(uint64_t addr, const Sink& sink);
  // Returns the fragment that the thread is at the start of. It is `expected`
  // if that starts there.
  [[nodiscard]] Result<uint32_t> Current(uint32_t expected);
  // To where a fragment falls.
  [[nodiscard]] Status Fall(uint32_t fragment, const Sink& sink);

  const SharedMemory& shared_;
  FragmentIndex& index_;
  uint32_t space_;
  uint32_t version_ = 0;
  Place place_;
};

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_PATH_READER_H_
