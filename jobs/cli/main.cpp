#include "jobs/cli/commands.hpp"

int main(int count, char** values) { return troupe::jobs::cli::run_command_line({values + 1, values + count}); }
