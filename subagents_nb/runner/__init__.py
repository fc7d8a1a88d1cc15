"""The child process of one run: carries out one frozen plan and decides no policy."""
