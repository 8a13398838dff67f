// Who used the processors of this machine: we or others. A measurement of real computation on a machine that
// also does something else says nothing about the product; whether it did is seen here, not in the result.
#pragma once

namespace sailor::closed_loop {

class MachineLoad {
 public:
  MachineLoad();
  // Processor seconds of other programs (time stolen by a hypervisor included) per second since the
  // construction. Our own are those of this process and of its children that it has waited for.
  double others() const;

 private:
  double busy_s_, own_s_, at_s_;
};

// Waits until others use less than `share` of a processor, `patience_s` at most.
void wait_for_quiet(double share, double patience_s);

}  // namespace sailor::closed_loop
