#include "bundle/convert_inputs.h"

#include <algorithm>
#include <string_view>

#include "common/bytes.h"
#include "common/x86/page.h"

namespace clew::bundle {
namespace {

constexpr int kGprCount = 16;
constexpr size_t kXsaveBytesMin = 576;  // up to the end of its header
constexpr size_t kXsaveBytesMax = 65536;
constexpr int kSyscallArgs = 6;
constexpr uint32_t kQueuesMax = 16;  // of a store buffer

Result<StartSegment> ToSegment(const pb::Segment& from,
                               const std::string& where) {
  const uint64_t addr = from.addr();
  const uint64_t size = from.size_bytes();
  if (addr % kPageBytes != 0 || size % kPageBytes != 0 || size == 0 ||
      addr + size < addr) {
    return CorruptInput(
        "{}: segment at {:#x} of {:#x} bytes, wanted whole pages that end "
        "before 2^64",
        where, addr, size);
  }
  if (from.data().size() > size) {
    return CorruptInput(
        "{}: segment at {:#x} has {:#x} bytes of data, wanted at most its "
        "size, {:#x}",
        where, addr, from.data().size(), size);
  }
  if (from.prot() > (kProtRead | kProtWrite | kProtExec)) {
    return CorruptInput("{}: segment at {:#x} has prot {:#x}, wanted 0..7",
                        where, addr, from.prot());
  }
  return StartSegment{.addr = TraceeAddr(addr),
                      .size_bytes = size,
                      .prot = from.prot(),
                      .name = from.name(),
                      .file_offset = from.file_offset(),
                      .shared_memory = from.shared_memory(),
                      .bytes = ToBytes(from.data())};
}

Status CheckOverlaps(std::vector<StartSegment>& segments,
                     const std::string& where) {
  std::sort(segments.begin(), segments.end(),
            [](const StartSegment& a, const StartSegment& b) {
              return a.addr < b.addr;
            });
  for (size_t i = 1; i < segments.size(); ++i) {
    const StartSegment& before = segments[i - 1];
    if (segments[i].addr.as_int() - before.addr.as_int() < before.size_bytes) {
      return CorruptInput(
          "{}: segments at {:#x} and {:#x} overlap, wanted none that do", where,
          before.addr, segments[i].addr);
    }
  }
  return {};
}

template <class Writes>
Result<std::vector<MemoryWrite>> ToWrites(const Writes& from,
                                          const std::string& where) {
  std::vector<MemoryWrite> writes;
  for (const pb::Write& write : from) {
    if (write.addr() + write.data().size() < write.addr()) {
      return CorruptInput(
          "{}: write of {} bytes at {:#x}, wanted one that ends before 2^64",
          where, write.data().size(), write.addr());
    }
    writes.push_back({TraceeAddr(write.addr()), ToBytes(write.data())});
  }
  return writes;
}

Result<InputRecord> ToSyscall(const pb::Syscall& from,
                              const std::string& where) {
  if (from.args_size() != kSyscallArgs) {
    return CorruptInput("{}: system call {} has {} args, wanted {}", where,
                        from.number(), from.args_size(), kSyscallArgs);
  }
  SyscallInput input;
  input.number = from.number();
  std::copy(from.args().begin(), from.args().end(), input.args.begin());
  if (from.returned()) {
    input.result = from.result();
  }
  CLEW_ASSIGN_OR_RETURN(writes, ToWrites(from.writes(), where));
  input.writes = std::move(writes);
  if (from.has_output()) {
    input.output_digest = from.output_digest();
    input.output_bytes = from.output_bytes();
  }
  if (from.read_digest() != 0) {
    input.read_digest = from.read_digest();
  }
  input.shared_memory = from.shared_memory();
  if (from.has_written_offset()) {
    input.written_offset = from.written_offset();
  }
  input.entered_tsc = TscTicks(from.entered_tsc());
  input.left_tsc = TscTicks(from.left_tsc());
  return input;
}

// What a later version may say besides is not known here.
SentTo ToSentTo(pb::Signal::SentTo from) {
  switch (from) {
    case pb::Signal::SENT_TO_THREAD:
      return SentTo::kThread;
    case pb::Signal::SENT_TO_PROCESS:
      return SentTo::kProcess;
    default:
      return SentTo::kUnknown;
  }
}

Result<InputRecord> ToSignal(const pb::Signal& from, const std::string& where) {
  if (from.number() < 1 || from.number() > 64) {
    return CorruptInput("{}: signal number is {}, wanted 1..64", where,
                        from.number());
  }
  CLEW_ASSIGN_OR_RETURN(writes, ToWrites(from.writes(), where));
  return SignalInput{.number = from.number(),
                     .interrupted_ip = TraceeAddr(from.interrupted_ip()),
                     .handler_ip = TraceeAddr(from.handler_ip()),
                     .rsp = from.rsp(),
                     .rdi = from.rdi(),
                     .rsi = from.rsi(),
                     .rdx = from.rdx(),
                     .rax = from.rax(),
                     .writes = std::move(writes),
                     .sent_to = ToSentTo(from.sent_to())};
}

Result<InputRecord> ToUnknown(const pb::Unknown& from,
                              const std::string& where) {
  if (from.count() == 0 || (from.has_call() && from.count() != 1)) {
    return CorruptInput(
        "{}: Unknown.count is {}, wanted {}", where, from.count(),
        from.has_call() ? "1 where there is a call" : "at least 1");
  }
  UnknownInput unknown{.count = from.count(), .cause = from.cause()};
  if (from.has_call()) {
    CLEW_RETURN_IF_ERROR(ToSyscall(from.call(), where));
    unknown.call_number = from.call().number();
  }
  return unknown;
}

// Of Start, which has the fields of one, or of StartThread.
template <class Thread>
Result<StartThread> ToStartThread(const Thread& from,
                                  const std::string& where) {
  if (from.gpr_size() != kGprCount) {
    return CorruptInput("{}: thread {}: gpr has {} registers, wanted {}", where,
                        from.thread(), from.gpr_size(), kGprCount);
  }
  const size_t bytes = from.xsave().size();
  if (bytes != 0 && (bytes < kXsaveBytesMin || bytes > kXsaveBytesMax)) {
    return CorruptInput("{}: thread {}: xsave has {} bytes, wanted {} to {}",
                        where, from.thread(), bytes, kXsaveBytesMin,
                        kXsaveBytesMax);
  }
  StartThread thread;
  thread.thread = Tid(from.thread());
  std::copy(from.gpr().begin(), from.gpr().end(), thread.gpr.begin());
  thread.rip = TraceeAddr(from.rip());
  thread.rflags = from.rflags();
  thread.fs_base = from.fs_base();
  thread.gs_base = from.gs_base();
  thread.xsave = ToBytes(from.xsave());
  thread.rseq_addr = from.rseq_addr();
  return thread;
}

ToldCpu ToToldCpu(const pb::ToldCpu& from) {
  std::vector<x86::CpuidLeaf> leaves;
  for (const pb::CpuidLeaf& leaf : from.leaves()) {
    leaves.push_back({.leaf = leaf.leaf(),
                      .sub_leaf = leaf.sub_leaf(),
                      .told = {.eax = leaf.eax(),
                               .ebx = leaf.ebx(),
                               .ecx = leaf.ecx(),
                               .edx = leaf.edx()}});
  }
  return {.cpuid = x86::CpuidTable(std::move(leaves)), .xcr0 = from.xcr0()};
}

}  // namespace

Result<StartState> ToStart(const pb::Start& from, const std::string& where) {
  if (from.x87_control() > 0xffff) {
    return CorruptInput("{}: x87_control is {:#x}, wanted 16 bits", where,
                        from.x87_control());
  }
  StartState start;
  CLEW_ASSIGN_OR_RETURN(first, ToStartThread(from, where));
  start.first = std::move(first);
  start.first.mxcsr = from.mxcsr();
  start.first.x87_control = static_cast<uint16_t>(from.x87_control());
  for (const pb::StartThread& other : from.other_threads()) {
    CLEW_ASSIGN_OR_RETURN(thread, ToStartThread(other, where));
    start.others.push_back(std::move(thread));
  }
  start.initial_stack = TraceeAddr(
      from.initial_stack() != 0 ? from.initial_stack() : start.first.gpr[kRsp]);
  start.mxcsr_mask = from.mxcsr_mask();
  start.cpu_features =
      start.cpu_features.With(x86::FeaturesNamed(from.cpu_features()));
  if (from.has_told_cpu()) {
    start.told_cpu = ToToldCpu(from.told_cpu());
  }
  start.brk = TraceeAddr(from.brk());
  for (const pb::Segment& segment : from.segments()) {
    CLEW_ASSIGN_OR_RETURN(converted, ToSegment(segment, where));
    start.segments.push_back(std::move(converted));
  }
  CLEW_RETURN_IF_ERROR(CheckOverlaps(start.segments, where));
  return start;
}

Result<InputRecord> ToInput(const pb::Input& from, const std::string& where) {
  switch (from.kind_case()) {
    case pb::Input::kSyscall:
      return ToSyscall(from.syscall(), where);
    case pb::Input::kSignal:
      return ToSignal(from.signal(), where);
    case pb::Input::kInsn:
      return InsnInput{.ip = TraceeAddr(from.insn().ip()),
                       .rax = from.insn().rax(),
                       .rbx = from.insn().rbx(),
                       .rcx = from.insn().rcx(),
                       .rdx = from.insn().rdx(),
                       .rflags = from.insn().rflags()};
    case pb::Input::kUnknown:
      return ToUnknown(from.unknown(), where);
    case pb::Input::KIND_NOT_SET:
      break;
  }
  return CorruptInput(
      "{}: an input of no kind, wanted a system call, a signal, an instruction "
      "or an unknown",
      where);
}

Result<Schedule> ToSchedule(const pb::Schedule& from,
                            const std::string& where) {
  Schedule schedule;
  switch (from.grade()) {
    case pb::Schedule::GRADE_NONE:
      schedule.grade = WitnessGrade::kNone;
      break;
    case pb::Schedule::GRADE_PATH_EXACT:
      schedule.grade = WitnessGrade::kPathExact;
      break;
    case pb::Schedule::GRADE_MEMORY_EXACT:
      schedule.grade = WitnessGrade::kMemoryExact;
      break;
    default:
      return CorruptInput("{}: grade is {}, wanted 0..2", where,
                          static_cast<int>(from.grade()));
  }
  if (!pb::Schedule::MemoryModel_IsValid(from.memory_model())) {
    return CorruptInput("{}: memory_model is {}, wanted 0..2", where,
                        static_cast<int>(from.memory_model()));
  }
  schedule.model = static_cast<MemoryModelKind>(from.memory_model());
  schedule.engine = from.engine();
  schedule.memory_bytes_compared = from.memory_bytes_compared();
  schedule.memory_bytes_equal = from.memory_bytes_equal();
  schedule.final_memory_digest = from.final_memory_digest();
  if (from.steps().empty()) {
    return CorruptInput("{}: steps is empty, wanted at least one", where);
  }
  schedule.steps.reserve(static_cast<size_t>(from.steps_size()));
  for (const pb::Step& step : from.steps()) {
    if (step.queue() > kQueuesMax) {
      return CorruptInput("{}: step {}: queue is {}, wanted 0..{}", where,
                          schedule.steps.size(), step.queue(), kQueuesMax);
    }
    schedule.steps.push_back({.kind = step.flush() ? ScheduleStep::Kind::kFlush
                                                   : ScheduleStep::Kind::kRun,
                              .queue = static_cast<uint16_t>(step.queue()),
                              .thread = Tid(step.thread()),
                              .until_insn = step.until_insn()});
  }
  return schedule;
}

pb::Schedule FromSchedule(const Schedule& from) {
  pb::Schedule to;
  switch (from.grade) {
    case WitnessGrade::kNone:
      to.set_grade(pb::Schedule::GRADE_NONE);
      break;
    case WitnessGrade::kPathExact:
      to.set_grade(pb::Schedule::GRADE_PATH_EXACT);
      break;
    case WitnessGrade::kMemoryExact:
      to.set_grade(pb::Schedule::GRADE_MEMORY_EXACT);
      break;
  }
  to.set_memory_model(static_cast<pb::Schedule::MemoryModel>(from.model));
  to.set_engine(from.engine);
  to.set_memory_bytes_compared(from.memory_bytes_compared);
  to.set_memory_bytes_equal(from.memory_bytes_equal);
  to.set_final_memory_digest(from.final_memory_digest);
  for (const ScheduleStep& step : from.steps) {
    pb::Step* added = to.add_steps();
    added->set_thread(step.thread.as_int());
    added->set_until_insn(step.until_insn);
    added->set_flush(step.kind == ScheduleStep::Kind::kFlush);
    added->set_queue(step.queue);
  }
  return to;
}

}  // namespace clew::bundle
