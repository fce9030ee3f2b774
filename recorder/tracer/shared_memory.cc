#include "recorder/tracer/shared_memory.h"

#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <initializer_list>
#include <utility>

#include "common/os/child_process.h"
#include "recorder/tracer/image.h"

namespace clew::tracer {
namespace {

bool WriteAt(const Fd& file, uint64_t offset,
             std::span<const std::byte> bytes) {
  return pwrite(file.get(), bytes.data(), bytes.size(),
                static_cast<off_t>(offset)) ==
         static_cast<ssize_t>(bytes.size());
}

struct Part {
  uint64_t offset;
  std::span<const std::byte> bytes;
};

// Brings these parts and the image into a file, and the file to its length.
// Where it may not be as long, only the hard limit of this process is kept.
Status FillFile(const Fd& file, std::initializer_list<Part> parts) {
  const auto image = RuntimeImage();
  const uint64_t size_bytes = kImageAt + image.size();
  rlimit before = {};
  const bool is_limited = getrlimit(RLIMIT_FSIZE, &before) == 0 &&
                          SetLimit(RLIMIT_FSIZE, RLIM_INFINITY, RLIM_INFINITY);
  const bool made =
      ftruncate(file.get(), static_cast<off_t>(size_bytes)) == 0 &&
      WriteAt(file, kImageAt, std::as_bytes(image)) &&
      std::ranges::all_of(parts, [&](const Part& part) {
        return WriteAt(file, part.offset, part.bytes);
      });
  const int error = errno;
  if (is_limited) {
    (void)setrlimit(RLIMIT_FSIZE, &before);  // it was so
  }
  if (!made && error == EFBIG) {
    return SystemError(
        error, fmt::format("cannot make memory for the tracer: files may have "
                           "at most {} bytes here (ulimit -H -f), wanted {}",
                           before.rlim_max, size_bytes));
  }
  return made ? Status()
              : SystemError(error, "cannot make memory for the tracer");
}

// Returns MAP_FAILED where the kernel refuses it; a `file` of -1 is none.
void* MapShared(void* at, int how, int file) {
  return mmap(at, kSharedBytes, PROT_READ | PROT_WRITE,
              MAP_SHARED | MAP_NORESERVE | how, file, 0);
}

// At the word of a slot that its thread waits for.
void WakeWaiter(const void* word) {
  syscall(SYS_futex, word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

}  // namespace

Result<SharedMemory> SharedMemory::Create() {
  void* const bytes = MapShared(nullptr, MAP_ANONYMOUS, -1);
  if (bytes == MAP_FAILED) {
    return SystemError(
        errno, fmt::format("cannot map {} GiB for the tracer, of addresses "
                           "alone (ulimit -v says how many there may be)",
                           kSharedBytes >> 30));
  }
  SharedMemory memory(static_cast<uint8_t*>(bytes));
  memory.header().fragments.store(1);
  memory.header().edges.store(1);
  return memory;
}

Status SharedMemory::MoveTo(const Fd& file) {
  CLEW_RETURN_IF_ERROR(
      FillFile(file, {{0, std::as_bytes(std::span(&header(), 1))},
                      {kRulesAt, std::as_bytes(std::span(&rules(), 1))}}));
  if (MapShared(bytes_, MAP_FIXED, file.get()) == MAP_FAILED) {
    return SystemError(errno, "cannot share memory with the program");
  }
  return {};
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : bytes_(std::exchange(other.bytes_, nullptr)) {}

SharedMemory::~SharedMemory() {
  if (bytes_ != nullptr) {
    munmap(bytes_, kSharedBytes);
  }
}

std::span<const Space> SharedMemory::spaces() const {
  return {At<Space>(kSpacesAt),
          std::min(header().spaces.load(), kSpacesMax - 1) + 1};
}

uint32_t SharedMemory::slot_count() const {
  return std::min(header().slots.load(), kThreadsMax);
}

void SharedMemory::FreeBatches(ThreadSlot& slot, uint32_t read) {
  slot.batches_read.store(read, std::memory_order_release);
  WakeWaiter(&slot.batches_read);
}

void SharedMemory::Order(ThreadSlot& slot, ParkOrder order) {
  slot.order.store(order, std::memory_order_release);
  WakeWaiter(&slot.order);
}

std::span<const LogRecord> SharedMemory::Unfinished(
    const ThreadSlot& slot) const {
  const auto capacity = static_cast<int64_t>(
      std::min<uint64_t>(slot.state.log_records, kBatchRecords));
  const int64_t left = -slot.state.log_index / int64_t{sizeof(LogRecord)};
  const int64_t count = std::clamp<int64_t>(capacity - left, 0, capacity);
  return std::span(slot.log)
      .last(static_cast<size_t>(capacity))
      .first(static_cast<size_t>(count));
}

void SharedMemory::EndReading() {
  header().is_over.store(1);
  for (uint32_t number = 0; number < slot_count(); ++number) {
    ThreadSlot& slot = this->slot(number);
    FreeBatches(slot, slot.batches_written.load());
    WakeWaiter(&slot.order);
  }
}

bool SharedMemory::Sleep() {
  constexpr timespec kMost = {.tv_sec = 0, .tv_nsec = 1'000'000};
  std::atomic<uint32_t>& word = header().recorder_sleeps;
  word.store(1);
  syscall(SYS_futex, &word, FUTEX_WAIT, 1, &kMost, nullptr, 0);
  return word.exchange(0) == 0;
}

void SharedMemory::Free(ThreadSlot& slot) {
  slot.batches_read.store(slot.batches_written.load());
  slot.tid = 0;
  // One that was taken out of the runtime where it was parked does not say so.
  slot.order.store(ParkOrder::kNotParked);
  slot.use.store(SlotUse::kFree);
}

std::string SharedMemory::FaultText() const {
  const uint64_t detail = header().fault_detail;
  switch (static_cast<Fault>(header().fault.load())) {
    case Fault::kNone:
      return "";
    case Fault::kTooManyFragments:
      return "the program has more code than the tracer has room for";
    case Fault::kTooManyThreads:
      return fmt::format("the program has more than {} threads", kThreadsMax);
    case Fault::kNoMemory:
      return fmt::format("the kernel refuses the tracer memory: {}",
                         std::strerror(static_cast<int>(detail)));
    case Fault::kUnsupportedInsn:
      return fmt::format(
          "the tracer does not know the instruction at {:#x}, which the "
          "program came to",
          detail);
    case Fault::kTooManyProcesses:
      return fmt::format("the program forked more than {} processes",
                         kSpacesMax);
    case Fault::kRuntime:
      return fmt::format("the tracer failed in the program, at {:#x}", detail);
  }
  return fmt::format("the tracer ended the program: {}", header().fault.load());
}

}  // namespace clew::tracer
