// The processor use of other programs on this machine. A measurement of real computation on a busy machine
// says nothing about the product; this detects it independently of the result.
#pragma once

namespace sailor::closed_loop {

class MachineLoad {
 public:
  MachineLoad();
  // Processor seconds of other programs (including time stolen by a hypervisor) per second since
  // construction. Our own are those of this process and of its children that it has waited for.
  double others() const;

 private:
  double busy_s_, own_s_, at_s_;
};

// Waits until others use less than `share` of a processor, at most `patience_s`.
void wait_for_quiet(double share, double patience_s);

}  // namespace sailor::closed_loop
