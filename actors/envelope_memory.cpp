#include "actors/envelope_memory.hpp"

#include <array>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace troupe::envelope_memory {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t kBytesMax = 0;  // the sanitizers see every message come and go
#else
constexpr std::size_t kBytesMax = 1024;
#endif
constexpr std::size_t kStep = 64;
constexpr std::size_t kClasses = 1024 / kStep;
constexpr std::size_t kBatch = 256;

struct Block {
  Block* next;
};
struct List {
  Block* head = nullptr;
  std::size_t count = 0;
  void push(Block* block) {
    block->next = head;
    head = block;
    ++count;
  }
  Block* pop() {
    Block* block = head;
    head = block->next;
    --count;
    return block;
  }
};

/// Batches that threads had too many of.
struct Market {
  std::mutex mutex;
  std::array<std::vector<List>, kClasses> batches;
};
Market& market() {
  static Market* const instance = new Market;  // outlives every thread
  return *instance;
}

struct Shelf {
  std::array<List, kClasses> lists;
  ~Shelf() {
    for (List& list : lists) {
      while (list.head != nullptr) ::operator delete(list.pop());
    }
  }
};
thread_local Shelf shelf;

void refill(List& list, std::size_t of) {
  const std::lock_guard lock(market().mutex);
  std::vector<List>& batches = market().batches[of];
  if (batches.empty()) return;
  list = batches.back();
  batches.pop_back();
}

void sell(List& list, std::size_t of) {
  List batch;
  while (batch.count < kBatch) batch.push(list.pop());
  const std::lock_guard lock(market().mutex);
  market().batches[of].push_back(batch);
}

}  // namespace

void* take(std::size_t bytes) {
  if (bytes > kBytesMax) return ::operator new(bytes);
  const std::size_t of = (bytes - 1) / kStep;
  List& list = shelf.lists[of];
  if (list.head == nullptr) refill(list, of);
  if (list.head == nullptr) return ::operator new((of + 1) * kStep);
  return list.pop();
}

void give(void* block, std::size_t bytes) {
  if (bytes > kBytesMax) return ::operator delete(block);
  const std::size_t of = (bytes - 1) / kStep;
  List& list = shelf.lists[of];
  list.push(static_cast<Block*>(block));
  if (list.count >= 2 * kBatch) sell(list, of);
}

}  // namespace troupe::envelope_memory
