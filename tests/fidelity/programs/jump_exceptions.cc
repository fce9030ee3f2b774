// Exceptions unwind, destroy and are thrown on, out of a thread too: C++17.
#include <future>
#include <stdexcept>
#include <string>

#include "check.h"

static int alive = 0;
struct Counted {
  Counted() { ++alive; }
  ~Counted() { --alive; }
};

static void Throw(int depth) {
  Counted counted;
  if (depth == 0) {
    throw std::runtime_error("deep");
  }
  try {
    Throw(depth - 1);
  } catch (const std::logic_error&) {
    CHECK(false);
  }
}

int main() {
  std::string caught;
  try {
    Throw(5);
  } catch (const std::exception& e) {
    caught = e.what();
  }
  CHECK(caught == "deep" && alive == 0);
  auto other = std::async(std::launch::async, [] { Throw(2); });
  try {
    other.get();
    CHECK(false);
  } catch (const std::runtime_error& e) {
    caught += e.what();
  }
  CHECK(caught == "deepdeep");
  CHECK(alive == 0);
  return Ok();
}
