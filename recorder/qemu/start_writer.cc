#include "recorder/qemu/start_writer.h"

#include "recorder/qemu/page_content.h"
#include "recorder/qemu/wire.h"

namespace clew::recorder {
namespace {

constexpr uint32_t kStartSegments = 10;
constexpr uint32_t kSegmentData = 6;
constexpr uint32_t kSegmentSharedMemory = 7;
constexpr uint32_t kStartThreads = 14;
constexpr uint32_t kThreadXsave = 7;
constexpr uint32_t kThreadRseq = 8;
constexpr uint32_t kStartToldCpu = 16;
constexpr uint32_t kStartRseq = 17;

// What is not there of a region in one piece of so many bytes or more is not
// written.
constexpr uint64_t kHoleBytes = 256 * 1024;

// A stretch of a region that is not all zero, by offsets.
struct Used {
  uint64_t begin = 0;  // the region's size: there is no more
  uint64_t end = 0;
  uint64_t looked = 0;  // so far
};

// Returns the next one, at `from` or behind it. It ends before a hole; pages of
// zeros within it are not looked for, as the program is stopped meanwhile.
Used NextUsed(const GuestRegion& region, uint64_t from, PageContent& content) {
  Used used = {.begin = content.Next(region, from)};
  used.looked = used.begin;
  do {
    used.end = content.NextAbsent(region, used.looked);
    used.looked = content.NextThere(region, used.end);
  } while (used.looked < region.size_bytes &&
           used.looked - used.end < kHoleBytes);
  while (used.end > used.begin && !content.Has(region, used.end - kPageBytes)) {
    used.end -= kPageBytes;
  }
  return used;
}

// `used` bytes of the region's begin; the rest is zero.
void WriteSegment(RawFile& file, const GuestRegion& region, uint64_t used,
                  const GuestMemory& memory) {
  Wire fields;
  fields.Number(1, region.addr);
  fields.Number(2, region.size_bytes);
  fields.Number(3, region.prot);
  fields.Text(4, region.name);
  fields.Number(5, region.file_offset);
  fields.Number(kSegmentSharedMemory, region.shared_memory);
  const uint64_t data_bytes =
      used > 0 ? Wire::FieldBytes(kSegmentData, used) : 0;
  Wire head;
  head.Head(kStartSegments, fields.bytes().size() + data_bytes);
  file.Append(head.bytes());
  file.Append(fields.bytes());
  if (used > 0) {
    head.Clear();
    head.Head(kSegmentData, used);
    file.Append(head.bytes());
    (void)memory.CopyTo(file, region.addr, used);  // unreadable reads as zero
  }
}

// A segment for each stretch that is used, with the zeros behind it; and one
// for those that the region begins with, as a stack does.
void WriteRegion(RawFile& file, const GuestRegion& region,
                 const GuestMemory& memory, PageContent& content) {
  Used used;
  Used next = NextUsed(region, 0, content);
  while (used.begin < region.size_bytes) {
    if (next.begin == used.begin) {
      used = next;
      next = NextUsed(region, used.looked, content);
    }
    GuestRegion segment = region;
    segment.addr += used.begin;
    segment.size_bytes = next.begin - used.begin;
    segment.file_offset += region.name.starts_with('/') ? used.begin : 0;
    WriteSegment(file, segment, used.end - used.begin, memory);
    used = {.begin = next.begin, .end = next.begin};
  }
}

std::string_view TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// What Start and StartThread have under the same numbers.
Wire RegistersOf(const StartThread& thread) {
  Wire fields;
  fields.Number(1, static_cast<uint64_t>(thread.thread.as_int()));
  Wire packed;
  for (const uint64_t value : thread.gpr) {
    packed.Varint(value);
  }
  fields.Text(2, packed.bytes());
  fields.Number(3, thread.rip.as_int());
  fields.Number(4, thread.rflags);
  fields.Number(5, thread.fs_base);
  fields.Number(6, thread.gs_base);
  return fields;
}

void WriteThread(RawFile& file, const StartThread& thread) {
  Wire fields = RegistersOf(thread);
  fields.Text(kThreadXsave, TextOf(thread.xsave));
  fields.Number(kThreadRseq, thread.rseq_addr);
  Wire field;
  field.Text(kStartThreads, fields.bytes());
  file.Append(field.bytes());
}

void WriteToldCpu(RawFile& file, const ToldCpu& cpu) {
  Wire fields;
  for (const x86::CpuidLeaf& leaf : cpu.cpuid.leaves()) {
    Wire told;
    told.Number(1, leaf.leaf);
    told.Number(2, leaf.sub_leaf);
    told.Number(3, leaf.told.eax);
    told.Number(4, leaf.told.ebx);
    told.Number(5, leaf.told.ecx);
    told.Number(6, leaf.told.edx);
    fields.Text(1, told.bytes());
  }
  fields.Number(2, cpu.xcr0);
  Wire field;
  field.Text(kStartToldCpu, fields.bytes());
  file.Append(field.bytes());
}

void WriteRegisters(RawFile& file, const StartState& state) {
  Wire fields = RegistersOf(state.first);
  fields.Number(7, state.first.mxcsr);
  fields.Number(8, state.first.x87_control);
  fields.Number(9, state.brk.as_int());
  fields.Number(11, state.mxcsr_mask);
  fields.Text(12, x86::NamesOf(state.cpu_features.Without(x86::kX86_64V2)));
  fields.Text(13, TextOf(state.first.xsave));
  fields.Number(15, state.initial_stack.as_int());
  fields.Number(kStartRseq, state.first.rseq_addr);
  file.Append(fields.bytes());
  if (state.told_cpu) {
    WriteToldCpu(file, *state.told_cpu);
  }
  for (const StartThread& other : state.others) {
    WriteThread(file, other);
  }
}

}  // namespace

Status WriteStart(const std::string& path, const StartState& state,
                  std::span<const GuestRegion> regions,
                  const GuestMemory& memory) {
  CLEW_ASSIGN_OR_RETURN(file, RawFile::Create(path));
  WriteRegisters(file, state);
  PageContent content(memory);
  for (const GuestRegion& region : regions) {
    WriteRegion(file, region, memory, content);
  }
  return file.Close();
}

}  // namespace clew::recorder
