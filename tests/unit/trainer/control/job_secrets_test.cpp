#include "trainer/control/job_secrets.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "tests/unit/planner/error_of.h"
#include "trainer/control/control_endpoint.h"

namespace sailor {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class JobSecretsTest : public testing::Test {
 protected:
  JobSecretsTest() { std::filesystem::create_directories(directory_); }
  ~JobSecretsTest() override { std::filesystem::remove_all(directory_); }

  std::string directory_ = testing::TempDir() + "/job-secrets-" + std::to_string(getpid());
  std::string file_ = directory_ + "/secrets";
};

TEST_F(JobSecretsTest, AreReadAsTheyWereWritten) {
  const JobSecrets secrets{make_curve_keys().secret_key, make_data_secret()};
  const JobSecretsFile file(directory_, secrets);
  const JobSecrets back = read_job_secrets(directory_);
  EXPECT_EQ(back.control_client_key, secrets.control_client_key);
  EXPECT_EQ(back.data, secrets.data);
  EXPECT_FALSE(back.encrypts_data);
  EXPECT_NE(make_data_secret(), secrets.data);
}

TEST_F(JobSecretsTest, SayWhetherDataIsEncrypted) {
  const JobSecretsFile file(directory_, {make_curve_keys().secret_key, make_data_secret(), true});
  EXPECT_TRUE(read_job_secrets(directory_).encrypts_data);
}

TEST_F(JobSecretsTest, OnlyTheirOwnerCanReadThemWhateverTheUmask) {
  const mode_t before = umask(0);
  const JobSecretsFile file(directory_, {make_curve_keys().secret_key, {}});
  umask(before);
  struct stat status {};
  ASSERT_EQ(stat(file_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_TRUE(file.is_private());
}

// A file or link that somebody put there first is not written to.
TEST_F(JobSecretsTest, ReplaceWhatIsThereAndEndWithTheJob) {
  const std::string elsewhere = directory_ + "/elsewhere";
  std::ofstream(elsewhere) << "untouched";
  std::filesystem::create_symlink(elsewhere, file_);
  {
    const JobSecretsFile file(directory_, {make_curve_keys().secret_key, {}});
    EXPECT_FALSE(std::filesystem::is_symlink(file_));
  }
  EXPECT_FALSE(std::filesystem::exists(file_));
  EXPECT_EQ(std::filesystem::file_size(elsewhere), std::string("untouched").size());
}

TEST_F(JobSecretsTest, ErrorsNameTheFile) {
  const auto read = [this] { read_job_secrets(directory_); };
  EXPECT_THAT(test::error_of<std::runtime_error>(read), AllOf(HasSubstr(file_), HasSubstr("No such file")));
  for (const char* text :
       {"", "too short\n", "1234567890123456789012345678901234567890\nnot hexadecimal\n"}) {
    std::ofstream(file_) << text;
    EXPECT_THAT(test::error_of<std::runtime_error>(read),
                AllOf(HasSubstr(file_), HasSubstr("secrets of a job")))
        << text;
  }
  EXPECT_THAT(test::error_of<std::runtime_error>([this] { JobSecretsFile(directory_ + "/none", {}); }),
              HasSubstr("none/secrets"));
}

}  // namespace
}  // namespace sailor
