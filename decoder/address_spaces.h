#ifndef CLEW_DECODER_ADDRESS_SPACES_H_
#define CLEW_DECODER_ADDRESS_SPACES_H_

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "common/units.h"
#include "decoder/code_map.h"

namespace clew::decoder {

// One process from its FORK or execve to the next execve.
using SpaceId = uint32_t;
// Of a process of which no FORK, execve or mapping is known.
inline constexpr SpaceId kSpaceUnknown = UINT32_MAX;

// What code each process of a trace had where. A FORK gives the child what its
// parent had then, an execve takes everything away. If all mappings are one
// process's there is one space, whatever process is asked for: those are the
// traces in which no other is named.
//
// A recorder tells what was there already by records at time 0: the state when
// it began or, in a snapshot, when it ended; then it is of a process's last
// space alone.
//
// Memory: what the records hold, and some tens of bytes for each FORK of a
// process and execve. Events come in any order, then Build once.
class AddressSpaces {
 public:
  AddressSpaces() = default;
  AddressSpaces(AddressSpaces&&) noexcept = default;
  AddressSpaces& operator=(AddressSpaces&&) noexcept = default;

  // Before any other: mappings are of several processes.
  void SetSeveral() { several_ = true; }
  bool several() const { return several_; }

  // `file`: of the code; empty if there is none.
  void AddMapping(const bundle::MmapRecord& mapping, TscTicks time,
                  std::string file);
  // At time 0 the child has only what is told of itself.
  void AddFork(int32_t parent, int32_t child, TscTicks time);
  void AddExec(int32_t process, TscTicks time);
  void Build(bool snapshot);

  // The space of a process at a time; its first one before it is known.
  SpaceId At(int32_t process, TscTicks time) const;
  // What is mapped there. Borrows from this object. Cost: its mappings.
  CodeMap MapOf(SpaceId space) const;
  // All mappings without a file, each path and build-id once.
  std::vector<bundle::MmapRecord> Missing() const;

 private:
  enum class Kind : uint8_t { kMapping, kFork, kExec };
  struct Event {
    Kind kind = Kind::kMapping;
    int32_t process = 0;
    int32_t parent = 0;  // kFork
    TscTicks time;
    const CodeMapping* mapping = nullptr;  // kMapping
  };
  struct Space {
    TscTicks begin;
    SpaceId parent = kSpaceUnknown;  // what it had at `begin` is here, too
    std::vector<const CodeMapping*> mappings;
  };
  SpaceId Begin(int32_t process, TscTicks time, SpaceId parent);
  void Fork(const Event& event);
  SpaceId LastOf(int32_t process);

  bool several_ = false;
  std::deque<CodeMapping> mappings_;  // addresses stay
  std::vector<Event> events_;         // until Build
  std::vector<Space> spaces_;
  std::map<int32_t, std::vector<SpaceId>> of_process_;  // in order of time
};

}  // namespace clew::decoder

#endif  // CLEW_DECODER_ADDRESS_SPACES_H_
