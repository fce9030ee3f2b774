// Goal: each packet has the bytes that libipt's packet encoder gives it.
// Method: exhaustive where the domain is small (short TNT, MTC, CBR), random
// values of every width elsewhere. Oracle: libipt's packet encoder.

#include "recorder/pt_encoder/packets.h"

#include <gtest/gtest.h>
#include <intel-pt.h>

#include <set>
#include <vector>

#include "common/digest.h"

namespace clew::recorder::packets {
namespace {

using PacketBytes = std::vector<uint8_t>;

PacketBytes Ipt(const pt_packet& packet) {
  uint8_t buffer[32] = {};
  pt_config config;
  pt_config_init(&config);
  config.begin = buffer;
  config.end = buffer + sizeof buffer;
  pt_encoder* encoder = pt_alloc_encoder(&config);
  const int size = pt_enc_next(encoder, &packet);
  pt_free_encoder(encoder);
  EXPECT_GT(size, 0) << pt_errstr(pt_errcode(size));
  return PacketBytes(buffer, buffer + (size > 0 ? size : 0));
}

PacketBytes Ipt(pt_packet_type type) {
  pt_packet packet = {};
  packet.type = type;
  return Ipt(packet);
}

template <class Put, class... Args>
PacketBytes Ours(Put put, Args... args) {
  uint8_t buffer[32] = {};
  return PacketBytes(buffer, put(buffer, args...));
}

// A value of 0 to 64 random bits.
uint64_t OfAnyWidth(Random& random) {
  const uint64_t shift = random.Below(64);
  return random.Next() >> shift;
}

TEST(PacketsTest, PacketsWithoutPayload) {
  EXPECT_EQ(Ours(PutPsb), Ipt(ppt_psb));
  EXPECT_EQ(Ours(PutPsbend), Ipt(ppt_psbend));
  EXPECT_EQ(Ours(PutOvf), Ipt(ppt_ovf));
}

TEST(PacketsTest, EveryShortTnt) {
  std::set<uint8_t> seen;
  for (uint32_t count = 1; count <= kShortTntBranchesMax; ++count) {
    for (uint64_t taken = 0; taken < uint64_t{1} << count; ++taken) {
      pt_packet packet = {};
      packet.type = ppt_tnt_8;
      packet.payload.tnt = {static_cast<uint8_t>(count), taken};
      const PacketBytes ours = Ours(PutTnt, taken, count);
      EXPECT_EQ(ours, Ipt(packet)) << count << " branches, " << taken;
      EXPECT_TRUE(seen.insert(ours.at(0)).second) << "two sequences, one byte";
    }
  }
  EXPECT_EQ(seen.size(), 126u);  // 2 + 4 + 8 + 16 + 32 + 64
}

TEST(PacketsTest, LongTnt) {
  Random random(1);
  for (uint32_t count = 7; count <= kLongTntBranchesMax; ++count) {
    for (int i = 0; i < 200; ++i) {
      const uint64_t taken = random.Next() >> (64 - count);
      pt_packet packet = {};
      packet.type = ppt_tnt_64;
      packet.payload.tnt = {static_cast<uint8_t>(count), taken};
      ASSERT_EQ(Ours(PutTnt, taken, count), Ipt(packet)) << count;
    }
  }
}

TEST(PacketsTest, ModeCbrMtc) {
  pt_packet mode = {};
  mode.type = ppt_mode;
  mode.payload.mode.leaf = pt_mol_exec;
  mode.payload.mode.bits.exec.csl = 1;
  EXPECT_EQ(Ours(PutModeExec64), Ipt(mode));
  mode.payload.mode.bits.exec.csl = 0;
  mode.payload.mode.bits.exec.csd = 1;
  EXPECT_EQ(Ours(PutModeExec32), Ipt(mode));
  for (uint32_t value = 0; value < 256; ++value) {
    pt_packet cbr = {};
    cbr.type = ppt_cbr;
    cbr.payload.cbr.ratio = static_cast<uint8_t>(value);
    EXPECT_EQ(Ours(PutCbr, value), Ipt(cbr)) << value;
    pt_packet mtc = {};
    mtc.type = ppt_mtc;
    mtc.payload.mtc.ctc = static_cast<uint8_t>(value);
    EXPECT_EQ(Ours(PutMtc, value + 0x300), Ipt(mtc)) << value;
  }
}

TEST(PacketsTest, TscTmaCyc) {
  Random random(2);
  for (int i = 0; i < 20000; ++i) {
    const uint64_t value = OfAnyWidth(random);
    SCOPED_TRACE(value);
    pt_packet tsc = {};
    tsc.type = ppt_tsc;
    tsc.payload.tsc.tsc = value & 0xffffffffffffff;
    ASSERT_EQ(Ours(PutTsc, value), Ipt(tsc));
    pt_packet tma = {};
    tma.type = ppt_tma;
    tma.payload.tma.ctc = static_cast<uint16_t>(value);
    tma.payload.tma.fc = static_cast<uint16_t>(value >> 20 & 0x1ff);
    ASSERT_EQ(Ours(PutTma, value, value >> 20), Ipt(tma));
    pt_packet cyc = {};
    cyc.type = ppt_cyc;
    cyc.payload.cyc.value = value >> 3;
    ASSERT_EQ(Ours(PutCyc, value >> 3), Ipt(cyc));
  }
}

pt_packet IpPacketOf(pt_packet_type type, uint64_t ip, uint64_t last_ip) {
  const uint64_t changed = ip ^ last_ip;
  const auto sign_extended =
      static_cast<uint64_t>(static_cast<int64_t>(ip << 16) >> 16);
  pt_packet packet = {};
  packet.type = type;
  packet.payload.ip.ip = ip;
  packet.payload.ip.ipc = changed < 1u << 16     ? pt_ipc_update_16
                          : changed < 1ull << 32 ? pt_ipc_update_32
                          : ip == sign_extended  ? pt_ipc_sext_48
                                                 : pt_ipc_full;
  return packet;
}

TEST(PacketsTest, AddressesAreCompressedAgainstTheLastOne) {
  Random random(3);
  std::set<size_t> sizes;
  for (int i = 0; i < 20000; ++i) {
    const uint64_t last_ip = OfAnyWidth(random);
    const uint64_t ip = last_ip ^ OfAnyWidth(random);
    const PacketBytes tip = Ours(PutIp, IpPacket::kTip, ip, last_ip);
    ASSERT_EQ(tip, Ipt(IpPacketOf(ppt_tip, ip, last_ip)));
    ASSERT_EQ(Ours(PutIp, IpPacket::kTipPge, ip, last_ip),
              Ipt(IpPacketOf(ppt_tip_pge, ip, last_ip)));
    ASSERT_EQ(Ours(PutIp, IpPacket::kFup, ip, last_ip),
              Ipt(IpPacketOf(ppt_fup, ip, last_ip)));
    sizes.insert(tip.size());
  }
  EXPECT_EQ(sizes, (std::set<size_t>{3, 5, 7, 9}));
}

TEST(PacketsTest, SuppressedAddress) {
  EXPECT_EQ(Ours(PutIpSuppressed, IpPacket::kTipPgd), Ipt(ppt_tip_pgd));
}

}  // namespace
}  // namespace clew::recorder::packets
