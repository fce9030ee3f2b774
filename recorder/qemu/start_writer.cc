#include "recorder/qemu/start_writer.h"

#include <algorithm>
#include <array>

#include "recorder/qemu/wire.h"

namespace clew::recorder {
namespace {

constexpr uint32_t kStartSegments = 10;
constexpr uint32_t kSegmentData = 6;

// The zero pages at a region's start, which get a segment without bytes.
uint64_t LeadingZeroBytes(const GuestRegion& region,
                          const GuestMemory& memory) {
  uint64_t zeros = 0;
  while (zeros < region.size_bytes &&
         !HasContent(memory, region.addr + zeros, kPageBytes)) {
    zeros += kPageBytes;
  }
  return zeros;
}

uint64_t UsedBytes(const GuestRegion& region, const GuestMemory& memory) {
  uint64_t used = region.size_bytes;
  while (used > 0 &&
         !HasContent(memory, region.addr + used - kPageBytes, kPageBytes)) {
    used -= kPageBytes;
  }
  return used;
}

void WriteSegment(RawFile& file, const GuestRegion& region,
                  const GuestMemory& memory) {
  const uint64_t used = UsedBytes(region, memory);
  Wire fields;
  fields.Number(1, region.addr);
  fields.Number(2, region.size_bytes);
  fields.Number(3, region.prot);
  fields.Text(4, region.name);
  fields.Number(5, region.file_offset);
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

// A stack has its contents at the end.
void WriteRegion(RawFile& file, const GuestRegion& region,
                 const GuestMemory& memory) {
  const uint64_t zeros = LeadingZeroBytes(region, memory);
  if (zeros == 0 || zeros == region.size_bytes) {
    WriteSegment(file, region, memory);
    return;
  }
  GuestRegion head = region;
  head.size_bytes = zeros;
  WriteSegment(file, head, memory);
  GuestRegion rest = region;
  rest.addr += zeros;
  rest.size_bytes -= zeros;
  rest.file_offset += region.name.starts_with('/') ? zeros : 0;
  WriteSegment(file, rest, memory);
}

void WriteRegisters(RawFile& file, const StartState& state) {
  Wire fields;
  fields.Number(1, static_cast<uint64_t>(state.thread.as_int()));
  Wire packed;
  for (const uint64_t value : state.gpr) {
    packed.Varint(value);
  }
  fields.Text(2, packed.bytes());
  fields.Number(3, state.rip.as_int());
  fields.Number(4, state.rflags);
  fields.Number(5, state.fs_base);
  fields.Number(6, state.gs_base);
  fields.Number(7, state.mxcsr);
  fields.Number(8, state.x87_control);
  fields.Number(9, state.brk.as_int());
  fields.Number(11, state.mxcsr_mask);
  fields.Text(12, x86::NamesOf(state.cpu_features.Without(x86::kX86_64V2)));
  file.Append(fields.bytes());
}

}  // namespace

Status WriteStart(const std::string& path, const StartState& state,
                  std::span<const GuestRegion> regions,
                  const GuestMemory& memory) {
  CLEW_ASSIGN_OR_RETURN(file, RawFile::Create(path));
  WriteRegisters(file, state);
  for (const GuestRegion& region : regions) {
    WriteRegion(file, region, memory);
  }
  return file.Close();
}

bool HasContent(const GuestMemory& memory, uint64_t addr, size_t count) {
  std::array<char, kPageBytes> page;
  const size_t size = std::min(count, page.size());
  return memory.Read(addr, page.data(), size) &&
         std::any_of(page.begin(), page.begin() + static_cast<long>(size),
                     [](char c) { return c != 0; });
}

}  // namespace clew::recorder
