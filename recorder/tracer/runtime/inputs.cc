#include "recorder/tracer/runtime/inputs.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <linux/if.h>
#include <linux/sem.h>
#include <linux/shm.h>
#include <linux/sockios.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>

#include "common/digest.h"
#include "common/linux/failure_report.h"
#include "common/linux/ioctl_size.h"
#include "common/linux/robust_list.h"
#include "common/linux/shared_memory.h"
#include "common/os/system_file.h"
#include "common/x86/page.h"
#include "recorder/tracer/runtime/call.h"
#include "recorder/tracer/runtime/signals.h"
#include "recorder/tracer/runtime/teller.h"

namespace clew::tracer {
namespace {

// ---- What calls write ------------------------------------------------------

uint64_t ArgumentOf(const ToldBefore& call, size_t index) {
  return call.arguments[std::min(index, call.arguments.size() - 1)];
}

const InputRules& RulesOf(ThreadState& thread) {
  return *RuntimeOf(thread).Shared<const InputRules>(kRulesAt);
}

// Returns nullptr for a call of which nothing is known.
const RawRule* RuleOf(ThreadState& thread, uint64_t number) {
  if (number >= CLEW_RAW_RULES) {
    return nullptr;
  }
  const RawRule& rule = RulesOf(thread).calls[number];
  return rule.known != 0 ? &rule : nullptr;
}

void TellWritten(Teller& teller, const ToldBefore& call,
                 const RawWritten& written, uint64_t result) {
  const uint64_t addr = ArgumentOf(call, written.arg);
  const uint64_t other = ArgumentOf(call, written.other);
  const uint64_t bytes = written.bytes;
  if (written.size == kRawOnInterrupt) {
    if (result == static_cast<uint64_t>(-EINTR)) {
      teller.TellRange(addr, bytes);
    }
    return;
  }
  if (IsError(result)) {
    return;
  }
  uint64_t size = 0;
  if (written.size == kRawFixed) {
    size = bytes;
  } else if (written.size == kRawResult) {
    size = result * bytes;
  } else if (written.size == kRawCounted) {
    size = other * bytes;
  } else if (written.size == kRawFdSet) {
    size = (call.arguments[0] + 63) / 64 * 8;
  } else if (written.size == kRawPages) {
    size = PagesIn(other);
  } else if (written.size == kRawBits) {
    size = (other + 62) / 64 * 8;
  } else if (written.size == kRawVector) {
    teller.TellVector(addr, other, result);
    return;
  } else if (written.size == kRawLengthAt) {
    uint32_t after = 0;
    if (other != 0 && teller.ReadOrMiss(other, after)) {
      teller.TellRange(addr, std::min(after, call.length_before));
      teller.TellRange(other, sizeof(after));
    }
    return;
  }
  if (written.limit != CLEW_RAW_NO_LIMIT) {
    size = std::min(size, ArgumentOf(call, written.limit));
  }
  teller.TellRange(addr, size);
}

RawWritten WrittenBy(const InputRules& rules, uint64_t number, uint32_t request,
                     size_t argument) {
  const uint64_t key = number << 32 | request;
  const auto key_of = [](const RawRequestRule& rule) {
    return uint64_t{rule.request.number} << 32 | rule.request.request;
  };
  const std::span<const RawRequestRule> requests =
      std::span(rules.requests)
          .first(std::min<size_t>(rules.request_count, CLEW_RAW_REQUESTS));
  const auto found = std::ranges::lower_bound(requests, key, {}, key_of);
  if (found != requests.end() && key_of(*found) == key) {
    return found->written;
  }
  return {.arg = static_cast<uint8_t>(argument + 1),
          .size = kRawFixed,
          .other = 0,
          .limit = CLEW_RAW_NO_LIMIT,
          .bytes = number != SYS_ioctl || IoctlArgumentBytes(request) == 0
                       ? CLEW_RAW_REQUEST_UNKNOWN
                       : IoctlWrittenBytes(request)};
}

void TellInterfaces(Teller& teller, uint64_t addr) {
  ifconf list = {};
  if (teller.ReadOrMiss(addr, list)) {
    teller.TellRange(addr, sizeof(list));
    teller.TellRange(AddrOf(list.ifc_buf), static_cast<uint64_t>(list.ifc_len));
  }
}

void TellSemaphores(Teller& teller, uint64_t set, uint64_t addr) {
  semid64_ds info = {};
  if (IsError(Call(SYS_semctl, set, 0, IPC_STAT, AddrOf(&info)))) {
    teller.Miss(Untold::kNotInTable);  // it was taken away meanwhile
  } else {
    teller.TellRange(addr, info.sem_nsems * sizeof(uint16_t));
  }
}

void TellRequest(Teller& teller, const ToldBefore& call,
                 const InputRules& rules, size_t argument, uint64_t result) {
  const auto request = static_cast<uint32_t>(ArgumentOf(call, argument));
  const uint64_t addr = ArgumentOf(call, argument + 1);
  const RawWritten written = WrittenBy(rules, call.number, request, argument);
  if (written.bytes != CLEW_RAW_REQUEST_UNKNOWN) {
    TellWritten(teller, call, written, result);
  } else if (call.number == SYS_ioctl && request == SIOCGIFCONF) {
    TellInterfaces(teller, addr);
  } else if (call.number == SYS_semctl && request == GETALL) {
    TellSemaphores(teller, call.arguments[0], addr);
  } else {
    teller.Miss(Untold::kNotInTable);
  }
}

// Private memory that was discarded is zero, and not there before somebody uses
// it; a file's is as in the file.
void TellDiscarded(Teller& teller, uint64_t addr, uint64_t bytes) {
  std::array<uint8_t, 256> is_there;
  for (const uint64_t end = addr + RoundUpToPage(bytes); addr < end;) {
    const uint64_t pages =
        std::min<uint64_t>((end - addr) / kPageBytes, is_there.size());
    if (IsError(Call(SYS_mincore, addr, pages * kPageBytes,
                     AddrOf(is_there.data())))) {
      return;  // it was unmapped meanwhile
    }
    for (const uint8_t page : std::span(is_there).first(pages)) {
      if ((page & 1) != 0) {
        teller.TellNonzero(addr, kPageBytes);
      }
      addr += kPageBytes;
    }
  }
}

bool IsRegularFile(uint64_t fd, struct stat& info) {
  return !IsError(Call(SYS_fstat, fd, AddrOf(&info))) && S_ISREG(info.st_mode);
}

// What of the pages can be read.
void TellPages(ThreadState& thread, Teller& teller, uint64_t addr,
               uint64_t pages) {
  if (pages > kWritesOfCallMax / kPageBytes) {
    teller.Miss(Untold::kTooLong);
    return;
  }
  for (; pages != 0; --pages, addr += kPageBytes) {
    uint8_t first = 0;
    if (Read(thread, addr, first)) {
      teller.TellRange(addr, kPageBytes);
    }
  }
}

void TellAdvised(ThreadState& thread, Teller& teller, const ToldBefore& call,
                 uint64_t result) {
  const uint64_t addr = call.arguments[0];
  const uint64_t bytes = call.arguments[1];
  const auto advice = static_cast<uint32_t>(call.arguments[2]);
  if (advice == MADV_DONTNEED && !IsError(result)) {
    TellDiscarded(teller, addr, bytes);
  } else if ((advice == MADV_DONTNEED || advice == MADV_REMOVE) &&
             addr % kPageBytes == 0) {  // else nothing was done
    TellPages(thread, teller, addr, PagesIn(bytes));
  }
}

// Memory that has grown is not there before somebody uses it, but for a file's.
void TellGrown(Teller& teller, const ToldBefore& call, uint64_t addr) {
  const uint64_t old_bytes = RoundUpToPage(call.arguments[1]);
  const uint64_t new_bytes = RoundUpToPage(call.arguments[2]);
  if (new_bytes > old_bytes) {
    TellDiscarded(teller, addr + old_bytes, new_bytes - old_bytes);
  }
}

void TellMapped(ThreadState& thread, Teller& teller, const ToldBefore& call,
                uint64_t addr, ToldCall& told) {
  const uint64_t bytes = call.arguments[1];
  const uint64_t protection = call.arguments[2];
  const uint64_t flags = call.arguments[3];
  const auto fd = static_cast<uint32_t>(call.arguments[4]);
  if ((flags & MAP_ANONYMOUS) != 0) {
    return;
  }
  // What is no file may be other than what is read, or be taken by that.
  struct stat info = {};
  if (!IsRegularFile(fd, info)) {
    teller.Miss(Untold::kNotInTable);
    return;
  }
  const bool is_shared = (flags & MAP_TYPE) != MAP_PRIVATE;
  if (is_shared) {
    told.shared_memory = SharedMemoryNumber(info.st_dev, info.st_ino);
  }
  if (is_shared &&
      OthersMayWrite(protection, Call(SYS_fcntl, fd, F_GETFL), info)) {
    RuntimeOf(thread).shared->maps_files = 1;
    teller.Miss(Untold::kSharedFile);
  }
  teller.TellPath(fd);
  teller.TellFile(fd, call.arguments[5], addr, RoundUpToPage(bytes));
}

// The kernel writes the new thread's number in two places, one of them perhaps
// later than this; that is in the new thread's memory.
void TellClone(Teller& teller, uint64_t flags, uint64_t parent, uint64_t child,
               uint64_t result) {
  const auto tid = static_cast<uint32_t>(result);
  if ((flags & CLONE_PARENT_SETTID) != 0) {
    teller.TellWord(parent, tid);
  }
  if ((flags & CLONE_CHILD_SETTID) != 0 && (flags & CLONE_VM) != 0) {
    teller.TellWord(child, tid);
  }
}

void TellClone3(Teller& teller, uint64_t addr, uint64_t result) {
  // Of struct clone_args.
  struct Arguments {
    uint64_t flags;
    uint64_t pidfd;
    uint64_t child_tid;
    uint64_t parent_tid;
  };
  Arguments arguments = {};
  if (!teller.ReadOrMiss(addr, arguments)) {
    return;
  }
  TellClone(teller, arguments.flags, arguments.parent_tid, arguments.child_tid,
            result);
  if ((arguments.flags & CLONE_PIDFD) != 0) {
    teller.TellRange(arguments.pidfd, sizeof(int));
  }
}

// Words that the kernel itself writes. What a lock with priority inheritance
// has follows from who has it and who waits; another thread may have changed it
// by now.
void TellFutex(Teller& teller, const ToldBefore& call) {
  switch (static_cast<int>(call.arguments[1]) & FUTEX_CMD_MASK) {
    case FUTEX_WAKE_OP:
      teller.TellRange(call.arguments[4], sizeof(uint32_t));
      break;
    case FUTEX_WAIT_REQUEUE_PI:
    case FUTEX_CMP_REQUEUE_PI:
      teller.TellRange(call.arguments[0], sizeof(uint32_t));
      break;
    default:
      break;
  }
}

void TellMessage(Teller& teller, uint64_t header, uint64_t received,
                 uint32_t name_bytes_max) {
  msghdr message = {};
  if (!teller.ReadOrMiss(header, message)) {
    return;
  }
  teller.TellVector(AddrOf(message.msg_iov), message.msg_iovlen, received);
  teller.TellRange(AddrOf(message.msg_name),
                   std::min(uint32_t{message.msg_namelen}, name_bytes_max));
  teller.TellRange(AddrOf(message.msg_control), message.msg_controllen);
  teller.TellRange(header, sizeof(message));
}

void TellMessages(Teller& teller, uint64_t messages, uint64_t count) {
  // How long a name's buffer was is not known any more.
  constexpr uint32_t kNameBytesMax = sizeof(sockaddr_storage);
  for (uint64_t i = 0; i < std::min(count, kIovecMax); ++i) {
    const uint64_t entry = messages + i * sizeof(mmsghdr);
    const uint64_t received_at = entry + offsetof(mmsghdr, msg_len);
    uint32_t received = 0;
    if (!teller.ReadOrMiss(received_at, received)) {
      return;
    }
    TellMessage(teller, entry, received, kNameBytesMax);
    teller.TellRange(received_at, sizeof(received));
  }
}

void TellSegment(Teller& teller, uint64_t segment, uint64_t addr,
                 ToldCall& told) {
  shmid64_ds info = {};
  told.shared_memory = SharedMemoryNumber(kMemoryDevice, segment);
  if (IsError(Call(SYS_shmctl, segment, IPC_STAT, AddrOf(&info)))) {
    teller.Miss(Untold::kNotInTable);
  } else {
    teller.TellRange(addr, info.shm_segsz);
  }
}

void TellSpecial(ThreadState& thread, Teller& teller, const ToldBefore& call,
                 const InputRules& rules, const RawRule& rule, uint64_t result,
                 ToldCall& told) {
  const std::array<uint64_t, 6>& arguments = call.arguments;
  switch (rule.special) {
    case kRawRequest:
      TellRequest(teller, call, rules, rule.request, result);
      break;
    case kRawMmap:
      TellMapped(thread, teller, call, result, told);
      break;
    case kRawClone:
      if (call.number == SYS_clone) {
        TellClone(teller, arguments[0], arguments[2], arguments[3], result);
        if ((arguments[0] & CLONE_PIDFD) != 0) {
          teller.TellRange(arguments[2], sizeof(int));
        }
      } else {
        TellClone3(teller, arguments[0], result);
      }
      break;
    case kRawFutex:
      TellFutex(teller, call);
      break;
    case kRawReceiveMessage:
      TellMessage(teller, arguments[1], result, call.length_before);
      break;
    case kRawReceiveMessages:
      TellMessages(teller, arguments[1], result);
      break;
    case kRawSendMessages:  // the length sent, in each
      teller.TellRange(arguments[1], result * sizeof(mmsghdr));
      break;
    case kRawMessageReceive:  // the type, then the text
      teller.TellRange(arguments[1], sizeof(long) + result);
      break;
    case kRawSharedMemory:
      TellSegment(teller, arguments[0], result, told);
      break;
    case kRawOtherMemory:
      if (static_cast<uint32_t>(arguments[0]) == Call(SYS_getpid)) {
        teller.TellVector(arguments[3], arguments[4], result);
      }
      break;
    case kRawFailsOnly:
      teller.Miss(Untold::kNotInTable);
      break;
    default:
      break;
  }
}

// ---- What calls put out ----------------------------------------------------

struct Output {
  bool is_to_error = false;  // standard error
  uint64_t bytes = 0;
  uint64_t digest = kEmptyDigest;
  bool is_report = false;  // that it fails
};

// Returns whether all could be read.
bool AddTo(Output& output, ThreadState& thread, uint64_t addr, uint64_t bytes) {
  std::array<uint8_t, 1024> buffer;
  while (bytes != 0) {
    const std::span<uint8_t> part =
        std::span(buffer).first(std::min<uint64_t>(bytes, buffer.size()));
    if (ReadSome(thread, addr, part) != part.size()) {
      return false;
    }
    if (output.is_to_error && output.bytes == 0) {
      output.is_report =
          IsFailureReport(part.first(std::min(part.size(), kReportBytesMax)));
    }
    output.digest = Digest(std::as_bytes(part), output.digest);
    output.bytes += part.size();
    addr += part.size();
    bytes -= part.size();
  }
  return true;
}

bool ReadOutput(ThreadState& thread, const ToldBefore& call, uint8_t kind,
                uint64_t bytes, Output& output) {
  uint64_t vector = call.arguments[1];
  uint64_t entries = call.arguments[2];
  if (kind == kRawOutputBuffer) {
    return AddTo(output, thread, vector, bytes);
  }
  if (kind == kRawOutputMessage) {
    msghdr message = {};
    if (!Read(thread, vector, message)) {
      return false;
    }
    vector = AddrOf(message.msg_iov);
    entries = message.msg_iovlen;
  }
  return ForVector(thread, vector, entries, bytes,
                   [&](uint64_t addr, uint64_t part) {
                     return AddTo(output, thread, addr, part);
                   });
}

void NoteOutput(ThreadState& thread, const ToldBefore& call, uint8_t kind,
                uint64_t bytes, ToldCall& told) {
  Output output = {.is_to_error = call.arguments[0] == STDERR_FILENO};
  if (ReadOutput(thread, call, kind, bytes, output)) {
    told.output_digest = output.digest;
    told.output_bytes = bytes;
    told.has_output = 1;
    told.is_report = output.is_report ? 1 : 0;
  }
}

// Where in the file `bytes` were written.
uint64_t WrittenOffset(const ToldBefore& call, const RawRule& rule,
                       uint64_t bytes, const struct stat& info) {
  constexpr uint64_t kAtPosition = UINT64_MAX;
  const uint64_t fd = call.arguments[0];
  const uint64_t offset = call.arguments[3];
  if (rule.file_change == kRawFileAtPosition || offset == kAtPosition) {
    return Call(SYS_lseek, fd, 0, SEEK_CUR) - bytes;
  }
  // Linux appends all the same (pwrite(2), BUGS).
  const bool appends = (Call(SYS_fcntl, fd, F_GETFL) & O_APPEND) != 0;
  return appends ? static_cast<uint64_t>(info.st_size) - bytes : offset;
}

// A file that it changed may be mapped. Its output is known.
void TellFileChange(Teller& teller, const ToldBefore& call, const RawRule& rule,
                    uint64_t result, ToldCall& told) {
  const uint64_t fd =
      call.arguments[rule.file_change == kRawFileOfThird ? 2 : 0];
  struct stat info = {};
  if (!IsRegularFile(fd, info)) {
    return;
  }
  if (told.has_output == 0) {
    teller.TellPath(fd);
    teller.Miss(Untold::kSharedFile);
    return;
  }
  told.shared_memory = SharedMemoryNumber(info.st_dev, info.st_ino);
  told.written_offset = WrittenOffset(call, rule, result, info);
}

// What is left of the locks that the thread holds as it ends.
void TellRobustLocks(ThreadState& thread, Teller& teller) {
  uint64_t head = 0;
  uint64_t head_bytes = 0;
  if (IsError(
          Call(SYS_get_robust_list, 0, AddrOf(&head), AddrOf(&head_bytes)))) {
    return;
  }
  ForHeldRobustLocks(
      head, static_cast<uint32_t>(SlotOf(thread).tid),
      [&](uint64_t addr, auto& to) { return Read(thread, addr, to); },
      [&](uint64_t word, uint32_t value) {
        teller.TellWord(word, (value & FUTEX_WAITERS) | FUTEX_OWNER_DIED);
      });
}

// The length that an argument points to.
uint32_t LengthOf(ThreadState& thread, uint64_t number,
                  const std::array<uint64_t, 6>& arguments) {
  uint32_t length = 0;
  if (number == SYS_recvmsg) {
    Read(thread, arguments[1] + offsetof(msghdr, msg_namelen), length);
    return length;
  }
  const RawRule* const rule = RuleOf(thread, number);
  if (rule == nullptr) {
    return 0;
  }
  for (const RawWritten& written : rule->writes) {
    const size_t at = std::min<size_t>(written.other, arguments.size() - 1);
    if (written.size == kRawLengthAt && arguments[at] != 0) {
      Read(thread, arguments[at], length);
    }
  }
  return length;
}

ToldCall CallOf(const ToldBefore& call) {
  return {.number = call.number,
          .args = call.arguments,
          .entered_tsc = call.entered_tsc};
}

void TellEffects(ThreadState& thread, Teller& teller, const ToldBefore& call,
                 uint64_t result, ToldCall& told) {
  const RawRule* const rule = RuleOf(thread, call.number);
  if (rule == nullptr) {
    if (result != static_cast<uint64_t>(-ENOSYS)) {
      teller.Miss(Untold::kNotInTable);
    }
    return;
  }
  for (const RawWritten& written : rule->writes) {
    TellWritten(teller, call, written, result);
  }
  if (call.number == SYS_madvise) {
    TellAdvised(thread, teller, call, result);
  }
  if (IsError(result)) {
    return;
  }
  if (call.number == SYS_mremap) {
    TellGrown(teller, call, result);
  }
  TellSpecial(thread, teller, call, RulesOf(thread), *rule, result, told);
  if (rule->output != kRawNoOutput) {
    NoteOutput(thread, call, rule->output, result, told);
  }
  if (rule->file_change != kRawNoFileChange &&
      RuntimeOf(thread).shared->maps_files != 0) {
    TellFileChange(teller, call, *rule, result, told);
  }
}

}  // namespace

ToldBefore BeforeCall(ThreadState& thread, uint64_t number,
                      const std::array<uint64_t, 6>& arguments) {
  ToldBefore call = {.number = number, .arguments = arguments};
  call.length_before = LengthOf(thread, number, arguments);
  call.entered_tsc = Tsc();
  return call;
}

void TellCall(ThreadState& thread, const ToldBefore& call, uint64_t result) {
  ToldCall told = CallOf(call);
  told.result = result;
  told.left_tsc = Tsc();
  told.has_returned = 1;
  Teller teller(thread);
  if (result != kNotMade) {
    TellEffects(thread, teller, call, result, told);
    if (call.number == SYS_set_tid_address) {
      thread.tell.clear_tid = call.arguments[0];
    }
  }
  told.untold = teller.untold();
  teller.TellItem(ToldKind::kCall, told);
}

void TellEnd(ThreadState& thread, const ToldBefore& call) {
  Teller teller(thread);
  TellRobustLocks(thread, teller);
  teller.TellWord(thread.tell.clear_tid, 0);  // others wait for it
  teller.TellItem(ToldKind::kCall, CallOf(call));
}

void TellSignal(ThreadState& thread, const ToldSignal& signal,
                uint64_t frame_bytes) {
  Teller teller(thread);
  teller.TellRange(signal.rsp, frame_bytes);
  teller.TellItem(ToldKind::kSignal, signal);
}

void TellInsn(ThreadState& thread, uint64_t ip) {
  Teller teller(thread);
  teller.TellItem(ToldKind::kInsn, ToldInsn{.ip = ip,
                                            .rax = thread.gpr[0],
                                            .rbx = thread.gpr[3],
                                            .rcx = thread.gpr[1],
                                            .rdx = thread.gpr[2],
                                            .rflags = thread.rflags});
}

}  // namespace clew::tracer
