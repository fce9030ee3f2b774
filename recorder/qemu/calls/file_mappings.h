#ifndef CLEW_RECORDER_QEMU_CALLS_FILE_MAPPINGS_H_
#define CLEW_RECORDER_QEMU_CALLS_FILE_MAPPINGS_H_

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "recorder/qemu/calls/syscall_effects.h"
#include "recorder/qemu/guest_memory.h"
#include "recorder/qemu/input_writer.h"
#include "recorder/qemu/tracer.h"

namespace clew::recorder {

// The file whose code `call`, which returned `result`, mapped. nullopt: none.
// What is behind another descriptor ("/memfd:name (deleted)") counts as made by
// the program.
std::optional<std::string> CodeFileOf(const SyscallCall& call, int64_t result,
                                      const GuestMemory& memory);
// Likewise, where `path` is that of the descriptor.
std::optional<std::string> CodeFileOf(const SyscallCall& call, int64_t result,
                                      const std::string& path);
// Which memory `call`, which returned `result`, mapped shared
// (SyscallInput::shared_memory).
uint64_t SharedMemoryOf(const SyscallCall& call, int64_t result,
                        const GuestMemory& memory);
// What it mapped of the file, whose `path` it borrows.
ExecMapping CodeMappedBy(const SyscallCall& call, int64_t result,
                         const std::string& path);

// That what the program reads in a mapping of the file may be in no log, for
// people.
std::string PhraseOfSharedFile(const std::string& path);

// Bytes of a file that a call changed.
struct FileRange {
  int fd = -1;
  uint64_t begin = 0;
  uint64_t end = 0;
};

// What `call`, which returned `result` just now, changed of the contents of a
// regular file, as its descriptor and its row (SyscallRow::file_change) tell.
// nullopt: nothing. Of what lies behind the file's end only the rest of the
// last page is told.
std::optional<FileRange> ChangedFile(const SyscallCall& call, int64_t result,
                                     const GuestMemory& memory);

// The files that the program maps, so that what a call changes in a file is
// known to change memory, too. Not thread-safe.
class FileMappings {
 public:
  // What a process that is recorded from here on has mapped already.
  void Begin(std::span<const GuestRegion> regions);
  // Whether some of it is shared, a file's or not.
  bool maps_shared_memory() const {
    return maps_shared_memory_ || !written_by_others_.empty();
  }
  // After each call that returned: keeps the list. Calls that map nothing cost
  // a comparison of their number.
  void Follow(const SyscallCall& call, int64_t result,
              const GuestMemory& memory);

  // Memory that `call` changed by way of the file behind it. Of memory that was
  // discarded (MADV_DONTNEED) that which is not zero now; all of it where it
  // was punched out of its file (MADV_REMOVE), or the call failed half way.
  // Where a mapping of a file has grown, what it has there.
  std::vector<MemoryRange> ChangedBy(const SyscallCall& call, int64_t result,
                                     const GuestMemory& memory) const;

  // Why the log may lack what the program read in a mapping: a phrase for each
  // file whose contents others can write, which no call of this process shows,
  // one for each segment of System V, and one for memory that it shares with
  // child processes.
  std::vector<std::string> Unlogged() const;

 private:
  struct FileId {
    uint64_t device = 0;
    uint64_t inode = 0;
    auto operator<=>(const FileId&) const = default;
  };
  struct Mapping {
    uint64_t addr = 0;
    uint64_t size_bytes = 0;
    uint64_t file_offset = 0;
    FileId file;
  };
  static std::optional<FileId> IdOf(const GuestMemory& memory, int fd);
  std::vector<MemoryRange> Advised(const SyscallCall& call, int64_t result,
                                   const GuestMemory& memory) const;
  std::vector<MemoryRange> Grown(const SyscallCall& call, int64_t result,
                                 const GuestMemory& memory) const;
  std::vector<MemoryRange> NotDiscarded(const SyscallCall& call,
                                        const GuestMemory& memory) const;
  bool IsMapped(uint64_t addr) const;
  void Map(uint64_t addr, const SyscallCall& call, const GuestMemory& memory);
  void Note(const GuestMemory& memory, int fd, uint64_t prot);
  void NoteShared(const GuestRegion& region);
  void Remove(uint64_t addr, uint64_t size_bytes);
  void Move(uint64_t from, uint64_t old_bytes, uint64_t to, uint64_t new_bytes);

  std::vector<Mapping> mappings_;
  std::set<std::string> written_by_others_;  // paths
  std::set<int> segments_;                   // of System V
  bool maps_shared_memory_ = false;          // of no file
  bool shares_with_children_ = false;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_CALLS_FILE_MAPPINGS_H_
