// The secrets of a job: the key with which its agents and ranks prove themselves on the control channel, and
// the secret with which ranks authenticate each other on the data plane. They are in a file of the run
// directory that only its owner can read, never in an environment: environments travel in launch requests,
// and every process of the job would show them.
#pragma once

#include <array>
#include <string>

namespace sailor {

struct JobSecrets {
  std::string control_client_key;        // CURVE secret key, Z85 text
  std::array<unsigned char, 32> data{};  // shared by all ranks
  bool encrypts_data = false;            // ranks encrypt what they send each other over sockets
};

// 32 random bytes. Throws std::runtime_error.
std::array<unsigned char, 32> make_data_secret();

// The file, with mode 0600, while this object exists. Replaces that of an earlier life of the job.
class JobSecretsFile {
 public:
  // Throws std::runtime_error with file and reason.
  JobSecretsFile(const std::string& run_directory, const JobSecrets& secrets);
  ~JobSecretsFile();
  JobSecretsFile(const JobSecretsFile&) = delete;
  JobSecretsFile& operator=(const JobSecretsFile&) = delete;

  // False if the file system gives it other permissions, so that other users may be able to read it.
  bool is_private() const { return private_; }

 private:
  std::string path_;
  bool private_ = false;
};

// Throws std::runtime_error with file and reason.
JobSecrets read_job_secrets(const std::string& run_directory);

}  // namespace sailor
