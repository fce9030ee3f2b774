// Goal: stop points, watchpoints and recorded files by their contracts.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "common/digest.h"
#include "replayer/image_files.h"
#include "replayer/stop_points.h"
#include "replayer/watch.h"

namespace clew::replayer {
namespace {

TEST(StopPoints, TheFilterNeverHidesABreakpoint) {
  const uint64_t seed = 3;
  SCOPED_TRACE(seed);
  Random random(seed);
  StopPoints points;
  std::unordered_set<uint64_t> model;
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t ip = random.Below(512) * 0x1001;
    if (random.Below(2) == 0) {
      ASSERT_TRUE(points.AddBreakpoint(ip));
      model.insert(ip);
    } else {
      points.RemoveBreakpoint(ip);
      model.erase(ip);
    }
    const uint64_t asked = random.Below(512) * 0x1001;
    ASSERT_EQ(points.HasBreakpoint(asked), model.contains(asked));
  }
}

TEST(StopPoints, OverlapIsOfBytesAndWrapsNowhere) {
  // Against the definition, byte by byte, in a small address space, and at the
  // end of the large one.
  for (uint64_t watch = 0; watch < 8; ++watch) {
    for (uint64_t size = 1; size < 5; ++size) {
      for (uint64_t addr = 0; addr < 12; ++addr) {
        for (uint64_t bytes = 1; bytes < 5; ++bytes) {
          bool shares = false;
          for (uint64_t b = addr; b < addr + bytes; ++b) {
            shares = shares || (b >= watch && b < watch + size);
          }
          EXPECT_EQ(Overlaps({watch, size, {}}, addr, bytes), shares);
        }
      }
    }
  }
  EXPECT_TRUE(Overlaps({~uint64_t{0}, 1, {}}, ~uint64_t{0} - 7, 8));
  EXPECT_FALSE(Overlaps({0, 8, {}}, ~uint64_t{0}, 1));
}

class WatchTest : public testing::Test {
 protected:
  WatchTest() { memory_.Map(0x1000, 0x1000, kProtRead | kProtWrite); }
  void Write(WatchMonitor& monitor, uint64_t addr, uint64_t value) {
    ASSERT_TRUE(memory_.Store(addr, value));
    monitor.OnAccess({.addr = addr,
                      .value = value,
                      .size_bytes = 8,
                      .kind = AccessKind::kWrite});
  }
  machine::Memory memory_;
};

TEST_F(WatchTest, OnlyAChangeOfTheWatchedBytesIsAWrite) {
  StopPoints points;
  ASSERT_TRUE(points.AddWatchpoint({0x1004, 2, WatchKind::kWrite}));
  WatchMonitor monitor(points, memory_);
  Write(monitor, 0x1000, 0xffff);  // beside the watched bytes
  EXPECT_FALSE(monitor.Check().has_value());
  Write(monitor, 0x1000, 0x1'0000'0000);
  EXPECT_TRUE(monitor.Check().has_value());
  EXPECT_FALSE(monitor.Check().has_value());
  Write(monitor, 0x1000, 0x1'0000'0000);  // the same again
  EXPECT_FALSE(monitor.Check().has_value());
}

TEST_F(WatchTest, AChangeByTheKernelIsSeenWithoutAnAccess) {
  StopPoints points;
  ASSERT_TRUE(points.AddWatchpoint({0x1000, 8, WatchKind::kWrite}));
  WatchMonitor monitor(points, memory_);
  const std::byte one{1};
  ASSERT_TRUE(memory_.Poke(0x1003, std::span(&one, 1)));
  EXPECT_TRUE(monitor.Check().has_value());
}

TEST_F(WatchTest, MappingTheWatchedMemoryIsNoChangeOfValue) {
  StopPoints points;
  ASSERT_TRUE(points.AddWatchpoint({0x9000, 8, WatchKind::kWrite}));
  WatchMonitor monitor(points, memory_);
  memory_.Map(0x9000, 0x1000, kProtRead | kProtWrite);
  EXPECT_FALSE(monitor.Check().has_value());
  Write(monitor, 0x9000, 7);
  EXPECT_TRUE(monitor.Check().has_value());
}

TEST_F(WatchTest, ReadsAndAccesses) {
  StopPoints points;
  ASSERT_TRUE(points.AddWatchpoint({0x1000, 8, WatchKind::kRead}));
  ASSERT_TRUE(points.AddWatchpoint({0x1008, 8, WatchKind::kAccess}));
  WatchMonitor monitor(points, memory_);
  EXPECT_FALSE(monitor.OnAccess(
      {.addr = 0x1000, .size_bytes = 8, .kind = AccessKind::kWrite}));
  EXPECT_TRUE(monitor.OnAccess(
      {.addr = 0x1004, .size_bytes = 4, .kind = AccessKind::kRead}));
  EXPECT_EQ(monitor.Check()->addr, 0x1000u);
  EXPECT_TRUE(monitor.OnAccess(
      {.addr = 0x100f, .size_bytes = 1, .kind = AccessKind::kWrite}));
  EXPECT_EQ(monitor.Check()->addr, 0x1008u);
}

class ImageFilesTest : public testing::Test {
 protected:
  ImageFilesTest() {
    std::string path = testing::TempDir() + "images-XXXXXX";
    EXPECT_NE(mkdtemp(path.data()), nullptr);
    directory_ = path;
  }
  ~ImageFilesTest() override { std::filesystem::remove_all(directory_); }
  std::string Stored(const std::string& name) { return Stored(name, name); }
  std::string Stored(const std::string& name, const std::string& text) {
    const std::string path = directory_ + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  std::string Read(ImageFiles& files, const std::string& path,
                   std::span<const std::byte> start = {}) {
    const auto bytes = files.Read(path, start);
    return bytes ? std::string(reinterpret_cast<const char*>(bytes->data()),
                               bytes->size())
                 : "error: " + bytes.error().message;
  }
  std::string directory_;
};

TEST_F(ImageFilesTest, FilesAreFoundByTheirRecordedNames) {
  ImageFiles files;
  files.Add("/usr/lib/x/libc.so.6", Stored("a"));
  files.Add("/opt/one/libz.so", Stored("b"));
  files.Add("/opt/two/libz.so", Stored("c"));
  EXPECT_EQ(Read(files, "/usr/lib/x/libc.so.6"), "a");
  EXPECT_EQ(Read(files, "/lib/x/libc.so.6"), "a");  // merged /usr
  EXPECT_EQ(Read(files, "/usr/lib/y/../x/libc.so.6"), "a");
  EXPECT_EQ(Read(files, "/lib64/libc.so.6"), "a");  // only one such name
  EXPECT_EQ(Read(files, "/opt/two/libz.so"), "c");
  EXPECT_EQ(Read(files, "/lib/libz.so"),
            "error: \"/lib/libz.so\" is not among the recorded files");
}

// By what the process has in memory of it, whatever path it was opened by; and
// before another file that only has the same base name.
TEST_F(ImageFilesTest, AFileIsFoundByItsStart) {
  const std::string one = std::string(5000, '1');
  std::string two(4096, '1');
  two += '2';
  ImageFiles files;
  files.Add("/lib/libone.so.1.0.4", Stored("a", one));
  files.Add("/opt/libone.so.1", Stored("b", "b" + one));
  const auto read = [&](const std::string& start) {
    return Read(files, "/lib/libone.so.1", std::as_bytes(std::span(start)));
  };
  EXPECT_EQ(read(one.substr(0, 4096)), one);
  EXPECT_EQ(read(""), "b" + one) << "by the base name";
  EXPECT_EQ(read(one.substr(0, 63)), "b" + one) << "less than an ELF header";
  EXPECT_EQ(read("x" + one), "b" + one) << "begins otherwise";
  files.Add("/copy/libone.so.1.0.4", Stored("c", one));
  EXPECT_EQ(read(one.substr(0, 4096)), one) << "a copy";
  files.Add("/else/libtwo.so.2", Stored("d", two));
  EXPECT_EQ(read(one.substr(0, 4096)), "b" + one) << "two begin like that";
}

TEST_F(ImageFilesTest, AStoredFileThatIsGoneIsAnError) {
  ImageFiles files;
  files.Add("/bin/p", directory_ + "/gone");
  EXPECT_EQ(files.Read("/bin/p").error().code, ErrorCode::kSystem);
}

}  // namespace
}  // namespace clew::replayer
