// Goal: each packet gets the reply that the protocol wants, and no packet of a
// stranger gets the stub to crash, to change the replay or to reply with more
// than a packet. Method: packets and replies by hand, then random ones over the
// commands' alphabet (seed printed).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "common/digest.h"
#include "common/text/hex.h"
#include "replayer/gdb/gdb_packet.h"
#include "replayer/gdb/gdb_registers.h"
#include "replayer/gdb/gdb_session.h"
#include "tests/replayer/fake_target.h"

namespace clew::replayer::gdb {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class TestClient final : public GdbClient {
 public:
  bool Interrupted() override { return interrupt; }
  void Notify(std::string_view payload) override {
    notices.emplace_back(payload);
  }
  bool interrupt = false;
  std::deque<std::string> notices;
};

// The first words of the lines that are not indented.
std::set<std::string> CommandsIn(const std::string& help) {
  std::set<std::string> names;
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(' ')) {
      names.insert(line.substr(0, line.find(' ')));
    }
  }
  return names;
}

constexpr x86::FeatureSet kWithAvx512 = {x86::Feature::kAvx512f};

class SessionTest : public testing::Test {
 protected:
  SessionTest()
      : target_(ToyThreads(3, 7), RandomSteps(1, 3, 50, 4), {}),
        timeline_(target_),
        session_(timeline_, files_, client_) {}

  std::string Ask(std::string_view packet) {
    return session_.Handle(packet).payload;
  }
  std::string Monitor(std::string_view command) {
    const std::string reply = Ask("qRcmd," + ToHex(command));
    return reply == "OK" ? "" : FromHex(reply).value_or("no hex");
  }

  FakeTarget target_;
  Timeline timeline_;
  ImageFiles files_;
  TestClient client_;
  GdbSession session_;
};

TEST_F(SessionTest, NamesWhatItCanDo) {
  const std::string reply = Ask("qSupported:swbreak+;hwbreak+;vContSupported+");
  for (const char* const feature :
       {"PacketSize=8000;", "ReverseStep+", "ReverseContinue+",
        "QStartNoAckMode+", "qXfer:features:read+", "swbreak+", "hwbreak+"}) {
    EXPECT_THAT(reply, HasSubstr(feature));
  }
  EXPECT_TRUE(session_.Handle("QStartNoAckMode").stop_acknowledging);
}

TEST_F(SessionTest, UnknownPacketsGetTheEmptyReply) {
  for (const char* const packet :
       {"", "!", "vMustReplyEmpty", "qNothing", "Z9,0,0", "b", "bx", "R"}) {
    EXPECT_EQ(Ask(packet), "") << packet;
  }
}

TEST_F(SessionTest, WritesAreRefusedInWords) {
  EXPECT_THAT(Ask("P0=0100000000000000"),
              StartsWith("E.a replay is read-only"));
  EXPECT_THAT(Ask("G00"), StartsWith("E.a replay is read-only"));
  EXPECT_THAT(Ask("M600000,1:00"), StartsWith("E.a replay is read-only"));
  EXPECT_THAT(Ask("X600000,1:a"), StartsWith("E.a replay is read-only"));
  EXPECT_EQ(Ask("X600000,0:"), "OK");
}

TEST_F(SessionTest, ASeekIsToldOnceAndKeepsTheThreadThatGdbChose) {
  EXPECT_EQ(Monitor("moved"), "");
  EXPECT_EQ(Ask("Hg3ea"), "OK");
  EXPECT_THAT(Monitor("seek 7"), StartsWith("at 7 of "));
  EXPECT_EQ(Monitor("moved"), fmt::format("{}\n", timeline_.CurrentThread()));
  EXPECT_EQ(Monitor("moved"), "");
  EXPECT_EQ(Ask("qC"), "QC3ea") << "gdb has not chosen another since";
  EXPECT_THAT(Monitor("seek 70000"), StartsWith("seek wants "));
  EXPECT_EQ(Monitor("moved"), "");
}

TEST_F(SessionTest, EveryLineOfTheHelpIsACommand) {
  const std::string help = Monitor("help");
  EXPECT_THAT(help, StartsWith("position          the number of "));
  EXPECT_THAT(help, HasSubstr("\nseek N|start|end  go there; "));
  for (const std::string& name : CommandsIn(help)) {
    EXPECT_NE(Monitor(name), help) << name;
  }
}

// The document's row of `monitor` has them in backquotes, with their arguments.
TEST_F(SessionTest, TheDocumentListsTheCommandsOfTheHelp) {
  const char* const source = std::getenv("CLEW_SOURCE_DIR");
  if (source == nullptr) {
    GTEST_SKIP() << "run by ctest, which sets CLEW_SOURCE_DIR";
  }
  std::ifstream document(std::string(source) + "/docs/design/replayer.md");
  std::set<std::string> documented;
  constexpr std::string_view kRow = "| `monitor` |";
  const std::regex command("`([a-z]+)[^`]*`");
  for (std::string line; std::getline(document, line);) {
    if (line.starts_with(kRow)) {
      line.erase(0, kRow.size());
      for (std::sregex_iterator at(line.begin(), line.end(), command), end;
           at != end; ++at) {
        documented.insert((*at)[1]);
      }
    }
  }
  EXPECT_EQ(documented, CommandsIn(Monitor("help")));
}

TEST_F(SessionTest, MemoryIsReadAsFarAsItGoes) {
  EXPECT_EQ(Ask("m600000,4"), "00000000");
  EXPECT_EQ(Ask("m600ffe,10"), "0000");
  EXPECT_EQ(Ask("m10,4"), "E0e");
  EXPECT_EQ(Ask("mffffffffffffffff,8"), "E0e");
  EXPECT_LE(Ask("m600000,ffffffffffffffff").size(), kPacketBytesMax);
  EXPECT_EQ(Ask("m600000"), "E01");
  EXPECT_EQ(Ask("m12345678901234567,1"), "E01");
}

// glibc's tables in the toy's data: three modules are numbered, the first has
// storage, the second has none yet, the third is not in the thread's table.
class TlsTest : public SessionTest {
 protected:
  static constexpr uint64_t kThread = kToyData + 0x400;
  static constexpr uint64_t kTable = kToyData + 0x500;
  static constexpr uint64_t kStorage = kToyData + 0x600;
  static constexpr uint64_t kLinkMap = kToyData + 0x700;
  static constexpr uint64_t kDescription = kToyData + 0x800;
  static constexpr uint64_t kModuleAt = 0x48;

  void SetUp() override {
    target_.set_fs_base(kThread);
    Put(kThread + 8, kTable);
    Put(kTable - 16, 2);
    Put(kTable + 16, kStorage);
    Put(kTable + 32, UINT64_MAX);
    Put(kDescription, 64 | uint64_t{1} << 32);
    Put(kDescription + 8, kModuleAt);
    SetModule(1);
  }
  void Put(uint64_t addr, uint64_t value) {
    ASSERT_TRUE(target_.memory().Store(addr, value));
  }
  void SetModule(uint64_t number) { Put(kLinkMap + kModuleAt, number); }
  std::string AskOf(uint64_t link_map, const char* thread = "3e8") {
    return Ask(fmt::format("qGetTLSAddr:{},10,{:x}", thread, link_map));
  }
  void TellSymbol() {
    const std::string name = ToHex("_thread_db_link_map_l_tls_modid");
    EXPECT_EQ(Ask("qSymbol::"), "qSymbol:" + name);
    EXPECT_EQ(Ask(fmt::format("qSymbol:{:x}:{}", kDescription, name)), "OK");
  }
};

TEST_F(TlsTest, AVariableIsInItsModulesStorageOfItsThread) {
  EXPECT_EQ(AskOf(kLinkMap), "E02") << "it is not known where modules are";
  EXPECT_EQ(Ask("qSymbol::" + ToHex("_thread_db_link_map_l_tls_modid")), "OK");
  EXPECT_EQ(AskOf(kLinkMap), "E02") << "gdb did not know either";
  TellSymbol();
  EXPECT_EQ(AskOf(kLinkMap), "600610");
  EXPECT_EQ(AskOf(0), "600610") << "a static program is module 1";
}

TEST_F(TlsTest, StorageThatIsNotThereIsAnError) {
  TellSymbol();
  for (const uint64_t module : {0ull, 2ull, 3ull, 1ull << 20, ~0ull}) {
    SetModule(module);
    EXPECT_EQ(AskOf(kLinkMap), "E02") << module;
  }
  SetModule(1);
  EXPECT_EQ(AskOf(0x10), "E02") << "no such memory";
  EXPECT_EQ(AskOf(kLinkMap, "1"), "E02") << "no such thread";
  Put(kDescription, 32 | uint64_t{1} << 32);
  EXPECT_EQ(AskOf(kLinkMap), "E02") << "a number of another size";
  Put(kThread + 8, UINT64_MAX);
  EXPECT_EQ(AskOf(0), "E02") << "no table";
  target_.set_fs_base(0);
  EXPECT_EQ(AskOf(0), "E02") << "no thread-local storage";
}

TEST_F(TlsTest, APacketThatLacksAFieldIsRefused) {
  for (const char* const packet :
       {"qGetTLSAddr:", "qGetTLSAddr:3e8", "qGetTLSAddr:3e8,10",
        "qGetTLSAddr:3e8,10,", "qGetTLSAddr:3e8,10,0,0",
        "qGetTLSAddr:x,10,0"}) {
    EXPECT_EQ(Ask(packet), "E01") << packet;
  }
}

TEST_F(SessionTest, TheRegisterPacketIsTheSumOfItsRegisters) {
  // 16 + rip of 8 bytes, 7 of 4, 8 of 10, 8 of 4, 16 of 16, mxcsr, 3 of 8,
  // 16 of 16.
  constexpr size_t kUpToAvx =
      17 * 8 + 7 * 4 + 8 * 10 + 8 * 4 + 16 * 16 + 4 + 3 * 8 + 16 * 16;
  constexpr size_t kOfAvx512 = 16 * 16 + 16 * 16 + 8 * 8 + 32 * 32;
  for (const x86::FeatureSet cpu : {x86::kX86_64V2, kWithAvx512}) {
    target_.set_cpu_features(cpu);
    const std::string all = Ask("g");
    std::string sum;
    for (size_t i = 0; i < RegisterCount(cpu); ++i) {
      sum += Ask(fmt::format("p{:x}", i));
    }
    EXPECT_EQ(all, sum);
    EXPECT_EQ(all.size(),
              2 * (kUpToAvx + (cpu == kWithAvx512 ? kOfAvx512 : 0)));
    EXPECT_EQ(Ask(fmt::format("p{:x}", RegisterCount(cpu))), "E01");
  }
  EXPECT_EQ(Ask("pffffffffffffffff"), "E01");
}

TEST_F(SessionTest, RegistersOfAvx512AreThoseOfACpuThatHasIt) {
  const auto description = [this] {
    return Ask("qXfer:features:read:target.xml:0,7000");
  };
  EXPECT_THAT(description(), Not(HasSubstr("avx512")));
  target_.set_cpu_features(kWithAvx512);
  EXPECT_THAT(description(), HasSubstr("org.gnu.gdb.i386.avx512"));
}

TEST_F(SessionTest, ThreadsOfNowAreSelected) {
  EXPECT_EQ(Ask("qfThreadInfo"), "m3e8,3e9,3ea");
  EXPECT_EQ(Ask("qsThreadInfo"), "l");
  EXPECT_EQ(Ask("Hg3e9"), "OK");
  EXPECT_EQ(Ask("qC"), "QC3e9");
  EXPECT_EQ(Ask("Hg7"), "E01");
  EXPECT_EQ(Ask("qC"), "QC3e9");
  EXPECT_EQ(Ask("T3ea"), "OK");
  EXPECT_EQ(Ask("T7"), "E01");
  EXPECT_EQ(Ask("Hc-1"), "OK");
  EXPECT_EQ(Ask("Hg123456789"), "E01");
  EXPECT_EQ(Ask("qThreadExtraInfo,3e9"), ToHex("toy-1"));
}

TEST_F(SessionTest, ObjectsComeInPieces) {
  std::string whole;
  while (true) {
    const std::string piece = Ask(
        fmt::format("qXfer:features:read:target.xml:{:x},100", whole.size()));
    ASSERT_THAT(piece.substr(0, 1), testing::AnyOf("m", "l"));
    whole += *Unescape(piece.substr(1));
    if (piece[0] == 'l') {
      break;
    }
  }
  EXPECT_EQ(whole, TargetXml(target_.cpu_features()));
  EXPECT_EQ(Ask("qXfer:features:read:other.xml:0,100"), "E00");
  EXPECT_EQ(Ask("qXfer:features:read:target.xml:ffffffffffffffff,100"), "l");
  EXPECT_EQ(Ask("qXfer:features:read:target.xml:0"), "E01");
  EXPECT_EQ(Ask("qXfer:features:write:target.xml:0:aa"), "");
}

TEST_F(SessionTest, NamesOfThreadsCannotForgeXml) {
  auto threads = ToyThreads(1, 4);
  threads[0].name = "<a b=\"&\x01\xff>";
  FakeTarget target(threads, {}, {});
  Timeline timeline(target);
  GdbSession session(timeline, files_, client_);
  EXPECT_THAT(session.Handle("qXfer:threads:read::0,1000").payload,
              HasSubstr("name=\"&lt;a b=&quot;&amp;??&gt;\""));
}

TEST_F(SessionTest, StopPointsHaveLimits) {
  EXPECT_EQ(Ask("Z2,600000,0"), "E01");
  EXPECT_EQ(Ask("Z2,600000,1001"), "E01");
  for (size_t i = 0; i < kWatchpointsMax; ++i) {
    EXPECT_EQ(Ask(fmt::format("Z2,{:x},8", 0x600000 + 8 * i)), "OK");
  }
  EXPECT_EQ(Ask("Z3,600000,8"), "E01");
  EXPECT_EQ(Ask("Z2,600000,8"), "OK");  // the same again is not a new one
  EXPECT_EQ(Ask("z2,600000,8"), "OK");
  EXPECT_EQ(Ask("Z3,600000,8"), "OK");
  EXPECT_EQ(Ask("z0,1,1"), "OK");  // removing what is not there
}

TEST_F(SessionTest, ASoftwareAndAHardwareBreakpointMayShareAnAddress) {
  EXPECT_EQ(Ask("Z0,401100,1"), "OK");
  EXPECT_EQ(Ask("Z1,401100,1"), "OK");
  EXPECT_EQ(Ask("z0,401100,1"), "OK");
  EXPECT_EQ(Ask("qSupported:hwbreak+"), Ask("qSupported:hwbreak+"));
  const std::string stop = Ask("vCont;c");
  EXPECT_THAT(stop, HasSubstr("thread:3e9;hwbreak:;"));
  EXPECT_EQ(Ask("z1,401100,1"), "OK");
  EXPECT_THAT(Ask("vCont;c"), HasSubstr("replaylog:end"));
}

TEST_F(SessionTest, BreakpointsAreNamedOnlyToAGdbThatKnowsHow) {
  EXPECT_EQ(Ask("Z0,401100,1"), "OK");
  EXPECT_THAT(Ask("vCont;c"), testing::Not(HasSubstr("swbreak")));
  (void)Ask("qSupported:swbreak+");
  EXPECT_EQ(Ask("bc").substr(0, 3), "T05");
  EXPECT_THAT(Ask("vCont;c"), HasSubstr("swbreak:;"));
}

TEST_F(SessionTest, ARangeIsSteppedUntilItsThreadLeavesIt) {
  EXPECT_EQ(Ask("Hg3e9"), "OK");
  EXPECT_THAT(Ask("vCont;r401100,40110c:3e9;c"), StartsWith("T05"));
  EXPECT_EQ(target_.ReadRegisters(Tid(1001))->rip, 0x40110cu);
}

TEST_F(SessionTest, TheEndsOfHistory) {
  EXPECT_THAT(Ask("bc"), HasSubstr("replaylog:begin;"));
  EXPECT_THAT(Ask("bs"), HasSubstr("replaylog:begin;"));
  EXPECT_THAT(Ask("vCont;c"), HasSubstr("replaylog:end;"));
  EXPECT_THAT(Ask("c"), HasSubstr("replaylog:end;"));
  EXPECT_EQ(timeline_.position(), target_.end());
}

TEST_F(SessionTest, ADivergenceIsToldAndTheReplayStaysWhereItIs) {
  target_.set_diverges_at(20);
  EXPECT_THAT(Ask("vCont;c"), StartsWith("T05"));
  ASSERT_EQ(client_.notices.size(), 1u);
  EXPECT_EQ(client_.notices[0], "O" + ToHex("clew: toy diverges at 20\n"));
  EXPECT_EQ(timeline_.position(), 0u);
}

TEST_F(SessionTest, FilesAreOnlyThoseOfTheRecording) {
  EXPECT_EQ(Ask("vFile:open:" + ToHex("/etc/passwd") + ",0,0"), "F-1,2");
  EXPECT_EQ(Ask("vFile:open:zz,0,0"), "F-1,16");
  EXPECT_EQ(Ask("vFile:open:" + ToHex("/x") + ",1,0"), "F-1,1e");
  EXPECT_EQ(Ask("vFile:pread:5,10,0"), "F-1,9");
  EXPECT_EQ(Ask("vFile:fstat:5"), "F-1,9");
  EXPECT_EQ(Ask("vFile:close:5"), "F-1,9");
  EXPECT_EQ(Ask("vFile:setfs:0"), "F0");
  EXPECT_EQ(Ask("vFile:unlink:2f"), "F-1,1e");
}

TEST_F(SessionTest, DetachAndKillEndTheSession) {
  EXPECT_TRUE(session_.Handle("D").close);
  EXPECT_TRUE(session_.Handle("vKill;1").close);
  const Reply kill = session_.Handle("k");
  EXPECT_TRUE(kill.close);
  EXPECT_FALSE(kill.send);
}

TEST(GdbSignal, AreGdbsOwnNumbers) {
  EXPECT_EQ(GdbSignal(11), 11);   // SIGSEGV
  EXPECT_EQ(GdbSignal(6), 6);     // SIGABRT
  EXPECT_EQ(GdbSignal(7), 10);    // SIGBUS
  EXPECT_EQ(GdbSignal(31), 12);   // SIGSYS
  EXPECT_EQ(GdbSignal(10), 30);   // SIGUSR1
  EXPECT_EQ(GdbSignal(99), 143);  // unknown
  EXPECT_EQ(GdbSignal(-1), 143);
}

TEST_F(SessionTest, RandomPacketsDoNoHarm) {
  const uint64_t seed = 4711;
  SCOPED_TRACE(seed);
  Random random(seed);
  static constexpr const char* kParts[] = {"vCont;",
                                           "qGetTLSAddr:",
                                           "qSymbol:",
                                           "s",
                                           "c",
                                           ":3e9",
                                           ";",
                                           "r",
                                           "401100",
                                           ",",
                                           "40",
                                           "bs",
                                           "bc",
                                           "Hg",
                                           "Hc",
                                           "m",
                                           "-1",
                                           "Z0,",
                                           "z0,",
                                           "Z2,",
                                           "600",
                                           "g",
                                           "p",
                                           "qXfer:",
                                           "read:",
                                           "auxv:",
                                           "vFile:",
                                           "open:",
                                           "pread:",
                                           "2f",
                                           "ffffffffffffffff",
                                           "qRcmd,",
                                           "7365656b203130",
                                           "?",
                                           "features:",
                                           "target.xml:",
                                           "T",
                                           "X",
                                           "\xff"};
  for (int round = 0; round < 20'000; ++round) {
    std::string packet;
    for (uint64_t n = 1 + random.Below(7); n > 0; --n) {
      packet += kParts[random.Below(std::size(kParts))];
    }
    const Reply reply = session_.Handle(packet);
    ASSERT_LE(reply.payload.size(), kPacketBytesMax) << packet;
    ASSERT_LE(timeline_.position(), target_.end());
  }
}

}  // namespace
}  // namespace clew::replayer::gdb
