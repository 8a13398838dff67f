#include "trainer/kernels/heads.h"

#include "trainer/kernels/grid.h"
#include "trainer/kernels/head_rows.h"
#include "trainer/kernels/host_loops.h"
#include "trainer/kernels/traffic.h"

namespace sailor::kernels {
namespace {

template <class T>
void move_on_processor(const HeadMove& move) {
  const int64_t heads = move.groups * move.heads_of_group();
  for_ranges(move.batch * move.tokens, 1 + (1 << 14) / (heads * move.size), [&](int64_t begin, int64_t end) {
    vectorised([&] {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t batch = i / move.tokens, token = i % move.tokens;
        for (int64_t head = 0; head < heads; ++head)
          move_row<T>(move, row_move<T>(move, batch, token, head), token, 0, 1);
      }
    });
  });
}

}  // namespace

void move_heads(const HeadMove& move, const Place& place) {
  const int64_t rows = move.rows();
  if (rows * move.size == 0) return;
  const RecordedKernel kernel(move.to_packed ? "heads to packed" : "heads from packed",
                              2 * rows * move.size * bytes_of(move.type));
  if (place.on_device) {
    const int64_t threads = move.in_packs() ? move.packs() : rows * kWarp;
    return launch("move_heads", move.type, (threads + kThreadsOfMoveHeads - 1) / kThreadsOfMoveHeads,
                  kThreadsOfMoveHeads, 0, &move, place);
  }
  with_element(move.type, [&](auto element) { move_on_processor<decltype(element)>(move); });
}

}  // namespace sailor::kernels
