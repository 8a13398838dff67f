#include "trainer/model/key_value_cache.h"

#include <stdexcept>

namespace sailor {

Heads KeyValueCache::extended(int layer, const Heads& heads) {
  const int64_t count = heads.key.size(2);
  if (tokens_ + count > capacity_) throw std::logic_error("more tokens than the cache has room for");
  KeysAndValues& all = of_layer_[layer];
  if (!all.keys.defined()) {
    const at::Tensor& key = heads.key;
    all.keys = at::empty({key.size(0), key.size(1), capacity_, key.size(3)}, key.options());
    all.values = at::empty_like(all.keys);
  }
  all.keys.narrow(2, tokens_, count).copy_(heads.key);
  all.values.narrow(2, tokens_, count).copy_(heads.value);
  return {heads.query, all.keys.narrow(2, 0, tokens_ + count), all.values.narrow(2, 0, tokens_ + count)};
}

}  // namespace sailor
