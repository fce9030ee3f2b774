#include "recorder/tracer/inject.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <string>

#include "common/os/fd.h"
#include "recorder/native/start_description.h"
#include "recorder/native/tracee/process_stat.h"
#include "recorder/qemu/guest_memory.h"
#include "recorder/tracer/calls_in_program.h"
#include "recorder/tracer/image.h"
#include "recorder/tracer/places.h"

namespace clew::tracer {
namespace {

using recorder::GuestMemory;

constexpr int kShared = MAP_SHARED | MAP_NORESERVE;
constexpr int kPrivate = MAP_PRIVATE | MAP_NORESERVE;

// Makes a file in memory in the program. Returns its descriptor there.
Result<uint64_t> MakeFile(CallsInProgram& calls, const GuestMemory& memory,
                          uint64_t rsp) {
  constexpr std::array kName = std::to_array("clew-tracer");
  // Below the red zone of the stack, which is as it was afterwards.
  constexpr uint64_t kBelow = 512;
  const uint64_t at = rsp - kBelow;
  std::array<char, kName.size()> before;
  if (!memory.Read(at, before.data(), before.size()) ||
      !memory.Write(at, kName.data(), kName.size())) {
    return SystemError(EFAULT, "cannot write the program's stack");
  }
  auto made = calls.Make("cannot make memory for the tracer in the program",
                         SYS_memfd_create, {at, MFD_CLOEXEC});
  (void)memory.Write(at, before.data(), before.size());
  return made;
}

// The program's file is what both have from here on: as another user, or in
// another container, it could not open one of this process.
Status Share(int32_t process, uint64_t descriptor, SharedMemory& shared) {
  const std::string path = fmt::format("/proc/{}/fd/{}", process, descriptor);
  const Fd file(open(path.c_str(), O_RDWR | O_CLOEXEC));
  return file.is_open()
             ? shared.MoveTo(file)
             : SystemError(errno, fmt::format("cannot open {:?}", path));
}

Status MapAll(CallsInProgram& calls, const Places& places, uint64_t file) {
  const auto map = [&](uint64_t addr, uint64_t bytes, uint64_t protection,
                       uint64_t how, uint64_t offset) -> Status {
    CLEW_RETURN_IF_ERROR(calls.Make(
        (protection & (PROT_WRITE | PROT_EXEC)) == (PROT_WRITE | PROT_EXEC)
            ? "the program may not have memory that is writable and executable "
              "(MemoryDenyWriteExecute= of its unit, PR_SET_MDWE)"
            : "cannot map the tracer's memory in the program",
        SYS_mmap,
        {addr, bytes, protection, how | MAP_FIXED_NOREPLACE,
         (how & MAP_ANONYMOUS) != 0 ? UINT64_MAX : file, offset}));
    return {};
  };
  constexpr uint64_t kData = PROT_READ | PROT_WRITE;
  CLEW_RETURN_IF_ERROR(map(places.shared, kSharedBytes, kData, kShared, 0));
  CLEW_RETURN_IF_ERROR(map(places.image, places.image_bytes,
                           PROT_READ | PROT_EXEC, MAP_PRIVATE, kImageAt));
  CLEW_RETURN_IF_ERROR(
      map(places.runtime, kRuntimeBytes, kData, kPrivate | MAP_ANONYMOUS, 0));
  for (const uint64_t cache : places.caches) {
    if (cache != 0) {
      CLEW_RETURN_IF_ERROR(map(cache, kCacheBytes, kData | PROT_EXEC,
                               kPrivate | MAP_ANONYMOUS, 0));
    }
  }
  return {};
}

Status UnmapAll(CallsInProgram& calls, const Places& places) {
  Status unmapped;
  for (const MemoryRange& range : MemoryOf(places)) {
    const auto made =
        calls.Make("cannot unmap the tracer's memory in the program",
                   SYS_munmap, {range.addr, RoundUpToPage(range.size_bytes)});
    if (!made) {
      unmapped = std::unexpected(made.error());
    }
  }
  return unmapped;
}

// All of it, or nothing.
Status BringIn(CallsInProgram& calls, const TracedProcess& process,
               const GuestMemory& memory, uint64_t rsp, const Places& places,
               SharedMemory& shared) {
  CLEW_ASSIGN_OR_RETURN(file, MakeFile(calls, memory, rsp));
  Status mapped = Share(process.process(), file, shared);
  if (mapped) {
    mapped = MapAll(calls, places, file);
    if (!mapped) {
      (void)UnmapAll(calls, places);  // why it is not mapped is told
    }
  }
  const auto closed =
      calls.Make("cannot close a file in the program", SYS_close, {file});
  CLEW_RETURN_IF_ERROR(mapped);
  CLEW_RETURN_IF_ERROR(closed);
  return {};
}

// Lets a thread begin at an entry of the image.
Status LetBegin(TracedProcess& process, const StartThread& start, uint32_t slot,
                uint64_t in_image, SharedMemory& shared) {
  shared.slot(slot).use.store(SlotUse::kThread);
  ThreadState& state = shared.slot(slot).state;
  state.gpr = start.gpr;
  state.rflags = start.rflags;
  state.resume = start.rip.as_int();
  const Places& places = shared.header().places;
  CLEW_ASSIGN_OR_RETURN(registers, process.Registers(start.thread));
  registers.rip = places.image + in_image;
  registers.eflags = kClearFlags;
  registers.rdi = places.shared;
  registers.rsi = slot;
  // Its upper end is not in use yet.
  registers.rsp = places.shared + kThreadsAt + (slot + 1) * kSlotBytes;
  registers.orig_rax = UINT64_MAX;
  return process.SetRegisters(start.thread, registers);
}

}  // namespace

Status Inject(TracedProcess& process, SharedMemory& shared) {
  const Tid thread = process.first_thread();
  CLEW_ASSIGN_OR_RETURN(start, recorder::DescribeThread(process, thread));
  CLEW_ASSIGN_OR_RETURN(memory, GuestMemory::OpenOf(process.process()));
  constexpr size_t kRsp = 4;
  const std::string auxv = process.ProcText("auxv");
  const uint64_t entry = recorder::AuxValue(auxv, AT_ENTRY);
  const uint64_t loader = recorder::AuxValue(auxv, AT_BASE);
  CLEW_ASSIGN_OR_RETURN(places,
                        ChoosePlaces(process.ProcText("maps"),
                                     loader != 0 ? loader : entry, entry));
  {
    // A signal that comes meanwhile is for the program, once it runs.
    CLEW_ASSIGN_OR_RETURN(calls,
                          CallsInProgram::Begin(process, memory, thread));
    CLEW_RETURN_IF_ERROR(
        BringIn(calls, process, memory, start.gpr[kRsp], places, shared));
  }
  shared.header().places = places;
  shared.header().slots.store(1);
  return LetBegin(process, start, 0, kStartAt, shared);
}

Result<uint32_t> Join(TracedProcess& process, Tid thread,
                      SharedMemory& shared) {
  CLEW_ASSIGN_OR_RETURN(start, recorder::DescribeThread(process, thread));
  const uint32_t slot = shared.header().slots.fetch_add(1);
  if (slot >= kThreadsMax) {
    return LimitReached("the program has more than {} threads", kThreadsMax);
  }
  CLEW_RETURN_IF_ERROR(LetBegin(process, start, slot, kJoinAt, shared));
  return slot;
}

Status TakeOut(TracedProcess& process, Tid thread, const SharedMemory& shared) {
  CLEW_ASSIGN_OR_RETURN(memory, GuestMemory::OpenOf(thread.as_int()));
  CLEW_ASSIGN_OR_RETURN(calls, CallsInProgram::Begin(process, memory, thread));
  return UnmapAll(calls, shared.header().places);
}

}  // namespace clew::tracer
