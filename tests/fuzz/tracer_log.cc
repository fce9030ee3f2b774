// The memory that a traced program shares with the recorder as the program
// might fill it: fragments, edges and a log. Nothing but errors may come of it,
// and code that lies in the memory.
//
//   input: a count byte each of fragments and edges, of as many bytes as they
//   have, and log records

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "common/check.h"
#include "recorder/tracer/path_reader.h"

namespace {

using clew::tracer::Batch;
using clew::tracer::BatchEnd;
using clew::tracer::Edge;
using clew::tracer::Fragment;
using clew::tracer::FragmentIndex;
using clew::tracer::LogRecord;
using clew::tracer::PathReader;
using clew::tracer::SharedMemory;

// Takes up to `count` values off the front of `rest`; returns how many.
template <class T>
uint32_t Fill(std::span<const uint8_t>& rest, T* to, uint32_t count) {
  const size_t bytes =
      std::min(rest.size() / sizeof(T), size_t{count}) * sizeof(T);
  std::memcpy(static_cast<void*>(to), rest.data(), bytes);
  rest = rest.subspan(bytes);
  return static_cast<uint32_t>(bytes / sizeof(T));
}

SharedMemory& Memory() {
  static auto memory = SharedMemory::Create();
  CLEW_CHECK(memory.has_value(), "no shared memory");
  return *memory;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::span<const uint8_t> rest(data, size);
  if (rest.size() < 2) {
    return 0;
  }
  const uint32_t fragments = rest[0];
  const uint32_t edges = rest[1];
  rest = rest.subspan(2);
  SharedMemory& memory = Memory();
  auto* const bytes = reinterpret_cast<uint8_t*>(&memory.header());
  memory.header().fragments.store(
      1 +
      Fill(rest,
           reinterpret_cast<Fragment*>(bytes + clew::tracer::kFragmentsAt) + 1,
           fragments));
  memory.header().edges.store(
      1 + Fill(rest,
               reinterpret_cast<Edge*>(bytes + clew::tracer::kEdgesAt) + 1,
               edges));
  FragmentIndex index(memory);
  PathReader reader(memory, index, 0);
  uint64_t sum = 0;
  const PathReader::Sink sink = [&sum](const clew::recorder::CodeStretch& run) {
    if (!run.code.empty()) {
      sum += run.code.front() + run.code.back();
    }
    return clew::Status();
  };
  uint64_t call = 0;
  while (rest.size() >= sizeof(LogRecord)) {
    LogRecord record = 0;
    Fill(rest, &record, 1);
    call = record;
    // Some numbers are the end of a batch, at an address, in a version.
    const bool is_end = (record >> 24 & 0x7f) == 0x7f;
    Batch batch;
    batch.records[0] = record;
    batch.record_count = is_end ? 0 : 1;
    batch.end = is_end ? static_cast<BatchEnd>(record & 7) : BatchEnd::kNothing;
    batch.addr = record & 0xffff00;
    batch.version = record & 3;
    batch.code_bytes = record >> 3;
    if (!reader.Read(batch, sink)) {
      break;
    }
  }
  (void)reader.ReadToCall(call, sink);
  return static_cast<int>(sum & 0);
}
