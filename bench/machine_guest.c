// A guest without libc for bench/machine.cc: hashing, LZ-style matching and a
// checksum over generated text, compiled for x86-64-v2 and run from Guest().
#include <stddef.h>
#include <stdint.h>

enum { kTextBytes = 1 << 16, kTableEntries = 1 << 12 };

static uint8_t text[kTextBytes];
static uint32_t table[kTableEntries];
static uint8_t packed[2 * kTextBytes];

static void MakeText(uint32_t seed) {
  for (size_t i = 0; i < kTextBytes; ++i) {
    seed = seed * 1103515245u + 12345u;
    text[i] = (uint8_t)("etaoin shrdlu"[(seed >> 16) % 13]);
  }
}

static uint32_t HashAt(const uint8_t* p) {
  const uint32_t v = (uint32_t)p[0] | (uint32_t)p[1] << 8 |
                     (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
  return (v * 2654435761u) >> 20;
}

static size_t Compress(void) {
  size_t out = 0;
  for (size_t i = 0; i + 4 < kTextBytes;) {
    const uint32_t h = HashAt(text + i);
    const size_t at = table[h];
    size_t length = 0;
    while (i + length + 1 < kTextBytes && at < i && length < 255 &&
           text[at + length] == text[i + length]) {
      ++length;
    }
    table[h] = (uint32_t)i;
    packed[out++] = length >= 4 ? (uint8_t)length : text[i];
    i += length >= 4 ? length : 1;
  }
  return out;
}

static uint32_t Crc(const uint8_t* bytes, size_t size) {
  uint32_t crc = ~0u;
  for (size_t i = 0; i < size; ++i) {
    crc ^= bytes[i];
    for (int bit = 0; bit < 8; ++bit) {
      crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xedb88320u : 0);
    }
  }
  return crc;
}

uint64_t Guest(uint64_t rounds) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < rounds; ++i) {
    MakeText((uint32_t)i);
    const size_t size = Compress();
    sum = sum * 31 + Crc(packed, size) + size;
  }
  return sum;
}
