// Goal: records that `perf record -z` compressed are read as if they were not,
// wherever the stream is cut into COMPRESSED records; what is damaged, cut off
// or expands without end is refused.
// Method: a capture of a real CPU whose kernel records are compressed here, in
// bodies of random sizes; the capture itself is the oracle. A recording of this
// host's perf -z against `perf report -D`, where perf can record.
#include "bundle/perf_data/packed_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include <cstdlib>
#include <cstring>
#include <map>

#include "bundle/perf_data/perf_data.h"
#include "bundle/perf_data/record_type.h"
#include "common/bytes.h"
#include "common/digest.h"
#include "common/os/file.h"
#include "common/os/scratch_folder.h"
#include "decoder/perf_trace.h"
#include "tests/support/captures.h"

namespace clew::decoder {
namespace {

using bundle::PackedRecords;
using bundle::PerfData;
using bundle::Record;
using bundle::RecordTypeName;
using test::kCapture;
using testing::HasSubstr;

// struct perf_file_header.
constexpr size_t kDataAt = 40;  // offset, size
constexpr size_t kFeaturesAt = 72;
constexpr size_t kFeaturesBytes = 32;

template <class T>
T Load(const std::string& bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

template <class T>
void Put(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string Text(const std::string& path) {
  const auto bytes = ReadWholeFile(path);
  EXPECT_TRUE(bytes) << bytes.error().message;
  return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
}

// One stream, flushed after each call.
class Compressor {
 public:
  Compressor() : context_(ZSTD_createCCtx()) {}
  ~Compressor() { ZSTD_freeCCtx(context_); }
  Compressor(const Compressor&) = delete;
  Compressor& operator=(const Compressor&) = delete;

  std::string Add(const std::string& bytes) {
    std::string out(ZSTD_compressBound(bytes.size()) + 64, '\0');
    ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
    ZSTD_outBuffer to{out.data(), out.size(), 0};
    EXPECT_EQ(ZSTD_compressStream2(context_, &to, &in, ZSTD_e_flush), 0u);
    out.resize(to.pos);
    return out;
  }

 private:
  ZSTD_CCtx* context_;
};

// COMPRESSED or COMPRESSED2 records with `packed` as their bodies.
std::string Cut(const std::string& packed, uint32_t type, Random& random) {
  std::string records;
  for (size_t at = 0; at < packed.size();) {
    const size_t bytes = std::min(packed.size() - at, 1 + random.Below(200));
    const size_t padding = type == 83 ? (8 - bytes % 8) % 8 : 0;
    Put(records, type);
    Put(records, uint16_t{0});
    Put(records,
        static_cast<uint16_t>(8 + (type == 83 ? 8 : 0) + bytes + padding));
    if (type == 83) {
      Put(records, uint64_t{bytes});
    }
    records += packed.substr(at, bytes) + std::string(padding, '\0');
    at += bytes;
  }
  return records;
}

// The data section with each run of the kernel's records compressed.
std::string PackData(const std::string& data, uint32_t type, Random& random) {
  Compressor compressor;
  std::string out;
  std::string run;
  const auto flush = [&] {
    out += run.empty() ? "" : Cut(compressor.Add(run), type, random);
    run.clear();
  };
  for (size_t at = 0; at < data.size();) {
    const auto of = Load<uint32_t>(data, at);
    size_t bytes = Load<uint16_t>(data, at + 6);
    if (of < 64) {
      run += data.substr(at, bytes);
    } else {
      flush();
      bytes += of == 71 ? Load<uint64_t>(data, at + 8) : 0;  // AUXTRACE's PT
      out += data.substr(at, bytes);
    }
    at += bytes;
  }
  flush();
  return out;
}

// The file without its features, which lie behind the data.
std::string WithData(const std::string& file, const std::string& data) {
  std::string out = file.substr(0, Load<uint64_t>(file, kDataAt)) + data;
  const uint64_t bytes = data.size();
  std::memcpy(out.data() + kDataAt + 8, &bytes, sizeof bytes);
  std::memset(out.data() + kFeaturesAt, 0, kFeaturesBytes);
  return out;
}

std::string DataOf(const std::string& file) {
  return file.substr(Load<uint64_t>(file, kDataAt),
                     Load<uint64_t>(file, kDataAt + 8));
}

std::string Packed(const std::string& file, uint32_t type, uint64_t seed) {
  Random random(seed);
  return WithData(file, PackData(DataOf(file), type, random));
}

Result<std::unique_ptr<PerfTrace>> TraceOf(const std::string& file) {
  CLEW_ASSIGN_OR_RETURN(data, PerfData::Over(AsBytes(file), "packed"));
  return PerfTrace::Load(std::move(data), {});
}

std::vector<std::string> SlicesOf(const PerfTrace& trace) {
  std::vector<std::string> slices;
  for (const Slice& slice : trace.slices()) {
    slices.push_back(fmt::format("{} {} {} [{},{}]", slice.thread,
                                 slice.process, slice.core, slice.time.lo,
                                 slice.time.hi));
  }
  return slices;
}

std::map<std::string, uint64_t> CountsOf(const PerfTrace& trace) {
  std::map<std::string, uint64_t> counts;
  for (const auto& [name, count] : trace.RecordCounts()) {
    counts[name] = count;
  }
  return counts;
}

TEST(PackedRecordsTest, AreReadAsIfTheyWereNot) {
  const std::string file = Text(kCapture);
  const std::string plain = WithData(file, DataOf(file));
  const auto oracle = TraceOf(plain);
  ASSERT_TRUE(oracle) << oracle.error().message;
  for (const uint32_t type : {81u, 83u}) {
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      SCOPED_TRACE(fmt::format("type {}, seed {}", type, seed));
      const std::string packed = Packed(file, type, seed);
      const auto trace = TraceOf(packed);
      ASSERT_TRUE(trace) << trace.error().message;
      auto counts = CountsOf(**trace);
      const char* name = type == 81 ? "COMPRESSED" : "COMPRESSED2";
      EXPECT_GT(counts[name], 20u);
      counts.erase(name);
      EXPECT_EQ(counts, CountsOf(**oracle));
      EXPECT_EQ(SlicesOf(**trace), SlicesOf(**oracle));
    }
  }
}

TEST(PackedRecordsTest, DamageIsRefusedOrReadable) {
  const std::string file = Packed(Text(kCapture), 81, 1);
  const uint64_t begin = Load<uint64_t>(file, kDataAt);
  Random random(1);
  int refused = 0;
  for (int i = 0; i < 200; ++i) {
    std::string copy = file;
    const uint64_t at = begin + random.Below(4000);
    copy[at] = static_cast<char>(copy[at] ^ (1 << random.Below(8)));
    refused += TraceOf(copy) ? 0 : 1;
  }
  EXPECT_GT(refused, 20);
}

std::string Rounds(size_t count) {
  std::string records;
  for (size_t i = 0; i < count; ++i) {
    Put(records, uint32_t{68});  // FINISHED_ROUND
    Put(records, uint16_t{0});
    Put(records, uint16_t{8});
  }
  return records;
}

Status UnpackAll(const std::string& plain, uint64_t bytes_max) {
  PackedRecords records("file", bytes_max);
  CLEW_RETURN_IF_ERROR(records.Unpack(AsBytes(Compressor().Add(plain)), 0x40,
                                      [](ByteReader&) { return Status(); }));
  return records.Finish();
}

TEST(PackedRecordsTest, WhatExpandsWithoutEndIsRefused) {
  EXPECT_TRUE(UnpackAll(Rounds(1000), 8000));
  const Status bomb = UnpackAll(Rounds(1'000'000), 8000);
  ASSERT_FALSE(bomb);
  EXPECT_EQ(bomb.error().code, ErrorCode::kLimit);
}

TEST(PackedRecordsTest, ARecordThatIsCutOffIsRefused) {
  const Status cut = UnpackAll(Rounds(2).substr(0, 13), 8000);
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().code, ErrorCode::kCorruptInput);
  EXPECT_THAT(cut.error().message,
              HasSubstr("file, decompressed: offset 0x8: the last record"));
}

TEST(PackedRecordsTest, OneInsideOfAnotherIsRefused) {
  const std::string file = Text(kCapture);
  Random random(1);
  const std::string inner = Cut(Compressor().Add(Rounds(1)), 81, random);
  const auto trace =
      TraceOf(WithData(file, Cut(Compressor().Add(inner), 81, random)));
  ASSERT_FALSE(trace);
  EXPECT_THAT(trace.error().message, HasSubstr("inside of another"));
}

// How many lines of `perf report -D` name that record.
uint64_t CountByPerf(const std::string& path, const std::string& name) {
  const std::string counted = path + "." + name;
  const std::string command =
      fmt::format("perf report -D -i {} 2>/dev/null | grep -c ': {}[: ]' > {}",
                  path, name, counted);
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  return std::strtoull(Text(counted).c_str(), nullptr, 10);
}

TEST(PackedRecordsTest, PerfsOwnAreReadAsPerfDoes) {
  const auto folder = ScratchFolder::Make("clew-packed");
  ASSERT_TRUE(folder) << folder.error().message;
  const std::string path = folder->path() + "/perf.data";
  const std::string command = fmt::format(
      "perf record -z -e cpu-clock:u -o {} ls / > /dev/null 2>&1", path);
  if (std::system(command.c_str()) != 0) {
    GTEST_SKIP() << "perf record -z does not work here";
  }
  auto data = PerfData::Open(path);
  ASSERT_TRUE(data) << data.error().message;
  std::map<std::string, uint64_t> counts;
  const Status read = data->ForEachRecord([&](const Record& record) -> Status {
    ++counts["PERF_RECORD_" + RecordTypeName(record.type)];
    return {};
  });
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_GT(counts["PERF_RECORD_COMPRESSED"], 0u);
  for (const char* name : {"PERF_RECORD_MMAP2", "PERF_RECORD_COMM"}) {
    EXPECT_GT(counts[name], 1u) << name;
    EXPECT_EQ(counts[name], CountByPerf(path, name)) << name;
  }
}

}  // namespace
}  // namespace clew::decoder
