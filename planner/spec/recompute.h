// What is computed again in the backward instead of being kept.
//
// Levels of a transformer block, each with all that the ones before it compute again (after `selective`):
//     none       nothing
//     selective  the inside of attention; what others have trained so, never this trainer
//     light      norms and the activation function of the MLP, which cost next to nothing
//     mlp        and the MLP's first product
//     full       the whole block, from its input
//     offload    the same, and the input waits in the memory of the node (Rajbhandari et al., 2021,
//                "ZeRO-Infinity", section 5.2.2): the block keeps nothing on its GPU
// The first layer of a model keeps nothing, and the last needs its result at once: they are never computed
// again.
#pragma once

#include <span>
#include <string>

namespace sailor {

class Field;

enum class Recompute { none, selective, light, mlp, full, offload };
inline constexpr int kRecomputeLevels = 6;
// The levels that this trainer has, in ascending order.
inline constexpr Recompute kTrainedLevels[] = {Recompute::none, Recompute::light, Recompute::mlp,
                                               Recompute::full, Recompute::offload};
inline constexpr std::span<const Recompute> trained_levels(bool may_offload) {
  return std::span(kTrainedLevels).first(std::size(kTrainedLevels) - (may_offload ? 0 : 1));
}

const char* to_string(Recompute recompute);
Recompute read_recompute(const Field& field);  // a word of a file; throws InputError on another

// Of a stage: its first `deep_blocks` blocks at the level `deep`, the others at a lower one. Value type.
class StageRecompute {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): a level is that of all blocks.
  constexpr StageRecompute(Recompute all = Recompute::none) : level_(all) {}
  constexpr StageRecompute(Recompute deep, int deep_blocks, Recompute level)
      : level_(level),
        deep_(deep_blocks > 0 && deep != level ? deep : Recompute::none),
        deep_blocks_(deep_blocks > 0 && deep != level ? deep_blocks : 0) {}

  Recompute level() const { return level_; }        // of the blocks after the first
  Recompute deep() const { return deep_; }          // of the first blocks, if there are any
  int deep_blocks() const { return deep_blocks_; }  // 0: all are at level()
  Recompute of_block(int block) const {             // from 0, in the stage
    return block >= 0 && block < deep_blocks_ ? deep_ : level_;
  }
  Recompute deepest() const { return deep_blocks_ > 0 ? deep_ : level_; }
  // Do inputs of blocks wait in the memory of the node?
  bool offloads() const { return deepest() == Recompute::offload; }
  // The same with all inputs on the GPU.
  StageRecompute without_offload() const {
    if (!offloads()) return *this;
    return deep_blocks_ > 0 ? StageRecompute(Recompute::full, deep_blocks_, level_) : Recompute::full;
  }
  bool operator==(const StageRecompute&) const = default;

 private:
  Recompute level_ = Recompute::none, deep_ = Recompute::none;
  int deep_blocks_ = 0;
};

// "full"; "3 full, light"; "3 full" if the others keep everything.
std::string to_string(const StageRecompute& recompute);

}  // namespace sailor
