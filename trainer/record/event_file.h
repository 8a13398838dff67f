// A TensorBoard event file of scalars (tensorflow/core/util/event.proto and lib/io/record_writer), written
// without TensorFlow: records of
//
//     uint64 length | masked CRC-32C of the length | bytes | masked CRC-32C of the bytes
//
// whose bytes are a serialised Event. Each record is written at once, so that TensorBoard can read the file
// during the run.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sailor {

// CRC-32C (Castagnoli), as in RFC 3720.
uint32_t crc32c(std::string_view bytes);

class EventFile {
 public:
  // Creates the directory and a new file in it, with a name that TensorBoard recognizes. Later files sort
  // after earlier ones. Throws std::runtime_error.
  EventFile(const std::string& directory, double wall_time_s);

  // Throws std::runtime_error when the file cannot be written.
  void write(int64_t step, double wall_time_s, const std::vector<std::pair<std::string, double>>& scalars);

  // Training continues at `step`: readers discard the data in earlier files from this step on. Throws like
  // write().
  void begin_session(int64_t step, double wall_time_s);

  const std::string& path() const { return path_; }

 private:
  void record(const std::string& event);

  std::string path_;
  std::ofstream out_;
};

}  // namespace sailor
