-- MySQL dump 10.13  Distrib 8.0.36, for Linux (x86_64)
--
DROP TABLE IF EXISTS `mine_job_table`;
CREATE TABLE `mine_job_table` (
  `job_db_inx` bigint unsigned NOT NULL
);
