"""What the commands of named experiments share: plans, work, findings, output."""
